package undo

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// asideName begins the name of the directory for what is moved. It is in the
// overlay only.
const asideName = "undo-"

func cut(path string) (name, rest string, deeper bool) { return strings.Cut(path, "/") }

// takeAside moves away what the call moved and is to be moved back: it may be
// where something else has to go, in a circle even.
func (t *tree) takeAside(ctx context.Context) error {
	for _, p := range t.Paths {
		from := p.Was.From
		if from == "" || from == p.Path {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.aside == "" {
			if err := t.makeAside(); err != nil {
				return err
			}
		}
		node, err := t.there(from)
		if err != nil {
			return err
		}
		name := t.aside + "/" + strconv.Itoa(len(t.moved))
		to, err := t.place(name)
		if err != nil {
			return err
		}
		if err := t.o.Rename(node, to); err != nil {
			return err
		}
		t.moved[from] = name
	}
	return nil
}

// makeAside makes the directory, under a name that nothing has or gets.
func (t *tree) makeAside() error {
	for i := 0; ; i++ {
		name := asideName + strconv.Itoa(i)
		p, err := t.place(name)
		if err != nil {
			return err
		}
		taken := slices.ContainsFunc(t.Paths, func(p Path) bool {
			top, _, _ := cut(p.Path)
			return top == name
		})
		if p.Node != nil || taken {
			continue
		}
		t.aside = name
		return t.o.Mkdir(p)
	}
}

// dropAside removes the directory, which is empty by now.
func (t *tree) dropAside(context.Context) error {
	if t.aside == "" {
		return nil
	}
	p, err := t.there(t.aside)
	if err != nil {
		return err
	}
	return t.o.Remove(p)
}

// remove removes what the call made, deepest first.
func (t *tree) remove(ctx context.Context) error {
	for _, p := range slices.Backward(t.Paths) {
		_, moved := t.moved[p.Path]
		stays := p.Left.Kind == Dir && p.Was.Kind == Dir || p.Was.From == p.Path
		if moved || stays || p.Left.Kind == Absent {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		place, err := t.there(p.Path)
		if err != nil {
			return err
		}
		err = t.o.Remove(place)
		if errors.Is(err, capabilities.ENOTEMPTY) {
			return &notEmptyError{p.Path}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeDirs makes the directories that were there, parents first.
func (t *tree) makeDirs(ctx context.Context) error {
	for _, p := range t.Paths {
		if p.Was.Kind != Dir || p.Left.Kind == Dir {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		place, err := t.place(p.Path)
		if err != nil {
			return err
		}
		if err := t.o.Mkdir(place); err != nil {
			return err
		}
		if place, err = t.there(p.Path); err != nil {
			return err
		}
		if err := t.chmod(place.Node, p.Was.Mode); err != nil {
			return err
		}
	}
	return nil
}

// put puts back files, links and special files.
func (t *tree) put(ctx context.Context) error {
	for _, p := range t.Paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch p.Was.Kind {
		case File:
			err = t.file(ctx, p)
		case Link:
			err = t.link(p)
		case Special:
			_, err = t.back(p)
		case Absent, Dir, Value:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// back moves back what the call moved, and returns what is at its old path then,
// nil for nothing.
func (t *tree) back(p Path) (*volume.Node, error) {
	to, err := t.place(p.Path)
	if err != nil {
		return nil, err
	}
	name, moved := t.moved[p.Was.From]
	if !moved || p.Was.From == p.Path {
		return to.Node, nil
	}
	from, err := t.there(name)
	if err != nil {
		return nil, err
	}
	return from.Node, t.o.Rename(from, to)
}

func (t *tree) link(p Path) error {
	n, err := t.back(p)
	if err != nil || n != nil {
		return err
	}
	place, err := t.place(p.Path)
	if err != nil {
		return err
	}
	return makeLink(t.o, place, p.Was.Target)
}

// file puts back a file: what the call left of it is changed where it has to be.
func (t *tree) file(ctx context.Context, p Path) error {
	n, err := t.back(p)
	if err != nil {
		return err
	}
	if n == nil {
		place, err := t.place(p.Path)
		if err != nil {
			return err
		}
		if n, err = t.o.Create(place); err != nil {
			return err
		}
	}
	if err := t.chmod(n, p.Was.Mode); err != nil {
		return err
	}
	if err := t.o.Open(n); err != nil {
		return err
	}
	defer t.o.Release(n)
	if err := t.fill(ctx, n, p); err != nil {
		return err
	}
	return t.touch(n, p.Was)
}

// fill gives a file its old content. To make it longer costs no memory, and shows
// zeros.
func (t *tree) fill(ctx context.Context, n *volume.Node, p Path) error {
	info, err := t.o.Info(n)
	if err != nil {
		return err
	}
	if info.Size != p.Was.Size {
		if err := t.o.Truncate(n, p.Was.Size); err != nil {
			return err
		}
	}
	if err := t.zeros(ctx, n, p.Was, info.Size); err != nil {
		return err
	}
	return old{t.old, t.object(p.Path)}.pieces(ctx, p.Was, func(off int64, data []byte) error {
		_, err := t.o.WriteAt(n, data, off)
		return err
	})
}

// zeros puts back zeros in what there was of a file before it was made longer.
func (t *tree) zeros(ctx context.Context, n *volume.Node, s State, size int64) error {
	var zeros []byte
	for i, k := range s.Content.Chunks {
		from, to := s.Content.chunkAt(i, s.Size)
		if to = min(to, size); !k.Zeros || from >= to {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if zeros == nil {
			zeros = make([]byte, s.Content.Chunk)
		}
		if _, err := t.o.WriteAt(n, zeros[:to-from], from); err != nil {
			return err
		}
	}
	return nil
}

// times puts back the times of directories, which all else has changed.
func (t *tree) times(ctx context.Context) error {
	for _, p := range slices.Backward(t.Paths) {
		if p.Was.Kind != Dir {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n := t.o.Root()
		if p.Path != "." {
			place, err := t.there(p.Path)
			if err != nil {
				return err
			}
			n = place.Node
		}
		if err := t.touch(n, p.Was); err != nil {
			return err
		}
	}
	return nil
}
