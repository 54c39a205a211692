package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Where is the transaction in which a call is taken back. What is nil is not
// there.
type Where struct {
	Volumes func(name string) *volume.Overlay // by the name in the record; nil for a volume that is not there
	Keys    Keys
	Blobs   store.Blobs
}

// Restore takes back what a call committed, in the overlays of a transaction that
// has done nothing else. It first looks whether everything is as the call left it,
// and whether all old contents are kept; only then it changes anything. After any
// error the transaction must be rolled back. What is read for it is no effect, and
// the change rests on it all the same.
//
// It returns an [*IncompleteError], [ErrUndone], a [*ChangedError], a [*GoneError],
// [ErrNoVolume], and the errors of the overlays, a [*volume.LimitError] among them.
func Restore(ctx context.Context, rec *Record, w Where) error {
	switch {
	case !rec.Complete():
		return &IncompleteError{rec.Lost, rec.MoreLost}
	case rec.UndoneBy != "":
		return fmt.Errorf("%w: by %s", ErrUndone, rec.UndoneBy)
	}
	if err := rec.valid(); err != nil {
		return err
	}
	r := &restoring{rec: rec, opts: w, overlays: map[string]*volume.Overlay{}}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	for _, v := range rec.Volumes {
		if err := r.volume(ctx, v); err != nil {
			return err
		}
	}
	return r.putKeys(ctx)
}

// restoring takes back one call.
type restoring struct {
	rec      *Record
	opts     Where
	overlays map[string]*volume.Overlay
	changed  ChangedError
}

// open finds all that the record is about.
func (r *restoring) open() error {
	for _, v := range r.rec.Volumes {
		var o *volume.Overlay
		if r.opts.Volumes != nil {
			o = r.opts.Volumes(v.Name)
		}
		if o == nil {
			return fmt.Errorf("%w: %q", ErrNoVolume, v.Name)
		}
		r.overlays[v.Name] = o
	}
	if len(r.rec.Keys) > 0 && r.opts.Keys == nil {
		return fmt.Errorf("%w: keys", ErrNoVolume)
	}
	for s := range r.rec.was {
		if (s.Kind == File || s.Kind == Value) && s.Content == nil {
			return fmt.Errorf("%w: content is missing", ErrInvalid)
		}
	}
	return nil
}

func volumeError(name string, err error) error { return fmt.Errorf("volume %q: %w", name, err) }

// tree is one volume on its way back.
type tree struct {
	Volume
	o     *volume.Overlay
	old   store.Blobs
	aside string            // a directory for what is moved, while it is
	moved map[string]string // by path that the call left: its name in aside
}

func (r *restoring) volume(ctx context.Context, v Volume) error {
	t := &tree{Volume: v, o: r.overlays[v.Name], old: r.opts.Blobs, moved: map[string]string{}}
	for _, phase := range []func(context.Context) error{t.takeAside, t.remove, t.makeDirs, t.put, t.dropAside, t.times} {
		if err := phase(ctx); err != nil {
			return t.changedSince(err)
		}
	}
	return nil
}

// changedSince returns the error of a volume. That a directory is not empty after
// all says that there is something in it which cannot be shown.
func (t *tree) changedSince(err error) error {
	var full *notEmptyError
	if errors.As(err, &full) {
		e := &ChangedError{}
		e.add(t.Name, t.object(full.path), OtherNames)
		return e
	}
	return volumeError(t.Name, err)
}

type notEmptyError struct{ path string }

func (e *notEmptyError) Error() string { return e.path + ": not empty" }

// place returns where a path is. It passes through directories only: the check
// has seen them.
func (t *tree) place(path string) (volume.Place, error) {
	dir, rest := t.o.Root(), path
	for {
		name, more, deeper := cut(rest)
		p, err := t.o.Walk(dir, name, false)
		if err != nil || !deeper {
			return p, err
		}
		switch {
		case p.Node == nil:
			return p, capabilities.ENOENT
		case p.Node.Kind() != volume.Dir:
			return p, capabilities.ENOTDIR
		}
		dir, rest = p.Node, more
	}
}

// there is place for what must be there.
func (t *tree) there(path string) (volume.Place, error) {
	p, err := t.place(path)
	if err == nil && p.Node == nil {
		err = capabilities.ENOENT
	}
	return p, err
}

// chmod gives a node its old permissions.
func (t *tree) chmod(n *volume.Node, mode fs.FileMode) error {
	info, err := t.o.Info(n)
	if err != nil || info.Mode.Perm() == mode {
		return err
	}
	return setMode(t.o, n, mode)
}

// touch gives a file or directory its old time.
func (t *tree) touch(n *volume.Node, s State) error {
	info, err := t.o.Info(n)
	if err != nil || plain(info.ModTime).Equal(s.ModTime) {
		return err
	}
	return t.o.SetTimes(n, s.ModTime)
}
