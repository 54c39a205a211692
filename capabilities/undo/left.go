package undo

import (
	"context"
	"errors"
	"io"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Now is what there is now, to compare a record with. What is nil is not there.
type Now struct {
	Volumes func(name string) volume.Base
	Keys    interface {
		Get(ctx context.Context, name string) (value []byte, ok bool, err error)
	}
	Blobs store.Blobs
}

// Diff shows what a call left. What the call made can be shown as long as it is
// as the call left it, what it replaced as long as the record has it.
func (r *Record) Diff(ctx context.Context, s Show, now Now) (*Diff, error) {
	s.Effects = r.Effects
	d := newDrawing(s)
	for _, v := range r.Volumes {
		var b volume.Base
		if now.Volumes != nil {
			b = now.Volumes(v.Name)
		}
		if err := d.volume(ctx, v, b, now.Blobs); err != nil {
			return nil, volumeError(v.Name, err)
		}
	}
	for _, k := range r.Keys {
		was := wasSide(d.KeyName(k.Name), k.Was, now.Blobs, nil)
		if err := d.key(ctx, d.KeyName(k.Name), was, keySide(d.KeyName(k.Name), k, now)); err != nil {
			return nil, keyError(k.Name, err)
		}
	}
	d.others()
	return &d.diff, nil
}

// volume adds what a call left in a volume.
func (d *drawing) volume(ctx context.Context, v Volume, b volume.Base, blobs store.Blobs) error {
	lefts, froms := map[string]State{}, map[string]Path{}
	for _, p := range v.Paths {
		lefts[p.Path] = p.Left
		if p.Was.From != "" && p.Was.From != p.Path {
			froms[p.Was.From] = p
		}
	}
	leftFile := func(path string) opener { return leftOf(b, path, lefts[path]) }
	for _, p := range v.Paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		q := pair{Path: p, object: v.object(p.Path)}
		q.was = wasSide(q.object, p.Was, blobs, leftFile(p.Was.From))
		q.left = leftSide(q.object, p.Left, leftFile(p.Path))
		if from := p.Was.From; from != "" && from != p.Path {
			q.to = v.object(from)
		}
		q.same, q.appended = p.onlyTimes(), p.appended()
		if f, ok := froms[p.Path]; ok {
			q.from = v.object(f.Path)
			q.fromWas = wasSide(q.from, f.Was, blobs, leftFile(p.Path))
		}
		if err := d.path(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// kept reports whether all of what was in a file is where it was.
func (p Path) kept() bool {
	if p.Was.Kind != File || p.Was.From != p.Path || p.Was.Content == nil {
		return false
	}
	for _, c := range p.Was.Content.Chunks {
		if !c.Kept() {
			return false
		}
	}
	return len(p.Was.Content.Inline) == 0
}

func (p Path) onlyTimes() bool { return p.kept() && p.Left.Kind == File && p.Left.Size == p.Was.Size }

func (p Path) appended() bool { return p.kept() && p.Left.Kind == File && p.Left.Size > p.Was.Size }

// opener opens a file, as long as it is as the call left it.
type opener func(ctx context.Context) (volume.Content, Note, error)

func leftOf(b volume.Base, path string, s State) opener {
	return func(ctx context.Context) (volume.Content, Note, error) {
		if b == nil || s.Kind != File {
			return nil, NoteGone, nil
		}
		how, err := differs(ctx, look(b), Path{Path: path, Left: s})
		switch {
		case unreadable(err):
			return nil, NoteDenied, nil
		case err != nil:
			return nil, "", err
		case how == OtherContent, how == OtherKind, how == NowGone:
			return nil, NoteChanged, nil
		}
		f, err := b.Open(path)
		if unreadable(err) {
			return nil, NoteDenied, nil
		}
		return f, "", err
	}
}

func leftSide(object string, s State, open opener) side {
	if s.Kind != File {
		return side{}
	}
	return side{object, s.Size, func(ctx context.Context) ([]byte, Note, error) {
		f, note, err := open(ctx)
		if err != nil || note != "" {
			return nil, note, err
		}
		defer f.Close()
		data := make([]byte, s.Size)
		return data, "", readFull(f, data, 0)
	}}
}

// wasSide is what a record has of a file or value; what is kept in what the call
// left is read there.
func wasSide(object string, s State, blobs store.Blobs, open opener) side {
	if s.Kind != File && s.Kind != Value {
		return side{}
	}
	return side{object, s.Size, func(ctx context.Context) ([]byte, Note, error) {
		if s.Content == nil {
			return nil, NoteGone, nil
		}
		var left io.ReaderAt
		if s.Content.anyKept() {
			f, note, err := open(ctx)
			if err != nil || note != "" {
				return nil, note, err
			}
			defer f.Close()
			left = f
		}
		data, err := old{blobs, object}.all(ctx, s, left)
		if errors.Is(err, store.ErrGone) {
			return nil, NoteGone, nil
		}
		return data, "", err
	}}
}

func (c *Content) anyKept() bool {
	for _, k := range c.Chunks {
		if k.Kept() {
			return true
		}
	}
	return false
}

func keySide(name string, k Key, now Now) side {
	if k.Left.Kind != Value {
		return side{}
	}
	return side{name, k.Left.Size, func(ctx context.Context) ([]byte, Note, error) {
		if now.Keys == nil {
			return nil, NoteGone, nil
		}
		value, ok, err := now.Keys.Get(ctx, k.Name)
		is := KeyValue{ok, value}
		if err == nil && !is.same(k.Left) {
			return nil, NoteChanged, nil
		}
		return value, "", err
	}}
}
