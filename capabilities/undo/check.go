package undo

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// check finds what is not as the call left it, and contents that are gone. It
// changes nothing.
func (r *restoring) check(ctx context.Context) error {
	for _, v := range r.rec.Volumes {
		if err := r.checkVolume(ctx, v); err != nil {
			return err
		}
	}
	if err := r.checkKeys(ctx); err != nil {
		return err
	}
	if len(r.changed.Changed) > 0 {
		return &r.changed
	}
	return r.available(ctx)
}

func (r *restoring) checkVolume(ctx context.Context, v Volume) error {
	now := look(r.overlays[v.Name].Result())
	known := map[string]bool{}
	for _, p := range v.Paths {
		known[p.Path] = p.Left.Kind != Absent
	}
	for _, p := range v.Paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		how, err := differs(ctx, now, p)
		if err != nil {
			return volumeError(v.Name, err)
		}
		if how == "" && p.Left.Kind == Dir && p.Was.Kind != Dir {
			how, err = holdsOther(now.base, p.Path, known)
			if err != nil {
				return volumeError(v.Name, err)
			}
		}
		if how != "" {
			r.changed.add(v.Name, v.object(p.Path), how)
		}
	}
	return nil
}

// differs returns how a path is not as the call left it, nothing if it is.
func differs(ctx context.Context, now *looker, p Path) (Difference, error) {
	is, info, err := now.state(p.Path)
	switch {
	case err != nil:
		return "", err
	case is.Kind == p.Left.Kind:
	case is.Kind == Absent:
		return NowGone, nil
	case p.Left.Kind == Absent:
		return NowThere, nil
	default:
		return OtherKind, nil
	}
	switch is.Kind {
	case Dir:
		if is.Mode != p.Left.Mode && !p.Aside {
			return OtherMode, nil
		}
	case Link:
		if is.Target != p.Left.Target {
			return OtherContent, nil
		}
	case File:
		if is.Mode != p.Left.Mode {
			return OtherMode, nil
		}
		return contentDiffers(ctx, now.base, p, is, info)
	case Absent, Special, Value:
	}
	return "", nil
}

func contentDiffers(ctx context.Context, now volume.Base, p Path, is State, info volume.Info) (Difference, error) {
	if is.Size != p.Left.Size {
		return OtherContent, nil
	}
	if p.Left.Digest == (store.Digest{}) {
		if !is.ModTime.Equal(p.Left.ModTime) {
			return OtherContent, nil
		}
		return "", nil
	}
	d, err := digestOf(ctx, now, p.Path, info.Size)
	if err != nil || d == p.Left.Digest {
		return "", err
	}
	return OtherContent, nil
}

// holdsOther reports whether a directory that the call made holds what the call
// did not put there.
func holdsOther(now volume.Base, dir string, known map[string]bool) (Difference, error) {
	list, hidden, err := listOf(now, dir)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if !known[join(dir, e.Name)] {
			hidden = true
		}
	}
	if hidden {
		return OtherNames, nil
	}
	return "", nil
}

func listOf(b volume.Base, dir string) (list []volume.Entry, hidden bool, err error) {
	if l, ok := b.(volume.Lister); ok {
		return l.List(dir)
	}
	list, err = b.ReadDir(dir)
	return list, false, err
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// available reads all blobs: what is gone must be known before anything is
// changed.
func (r *restoring) available(ctx context.Context) error {
	look := func(object string, s State) error {
		return old{r.opts.Blobs, object}.pieces(ctx, s, func(int64, []byte) error { return nil })
	}
	for _, v := range r.rec.Volumes {
		for _, p := range v.Paths {
			if err := look(v.object(p.Path), p.Was); err != nil {
				return err
			}
		}
	}
	for _, k := range r.rec.Keys {
		if err := look(k.Name, k.Was); err != nil {
			return err
		}
	}
	return nil
}
