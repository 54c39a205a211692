package stored

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Read writes what a file holds to w, one piece at a time.
func Read(ctx context.Context, t *Tree, name string, w io.Writer) error {
	f, err := t.open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(w, io.NewSectionReader(f, 0, f.size), make([]byte, maxInline))
	return err
}

// Listed is a path of a volume and what is there.
type Listed struct {
	Path string
	volume.Info
}

// List returns what a directory holds, sorted by name; with deep also what is
// below, after the directory that it is in. A file is a list of one.
func List(ctx context.Context, t *Tree, name string, deep bool) ([]Listed, error) {
	n, err := t.node(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case !n.exists:
		return nil, t.absent(ctx, name)
	case n.kind != volume.Dir:
		return []Listed{{name, n.info(name)}}, nil
	}
	return below(ctx, t, name, deep, nil)
}

func below(ctx context.Context, t *Tree, dir string, deep bool, list []Listed) ([]Listed, error) {
	names, err := t.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, e := range names {
		paths[i] = join(dir, e.Name)
	}
	found, err := t.nodes(ctx, paths)
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		list = append(list, Listed{path, found[i].info(path)})
		if deep && found[i].kind == volume.Dir {
			if list, err = below(ctx, t, path, deep, list); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Volumes returns the spaces of all volumes that a store has, sorted by principal,
// package and name.
func Volumes(ctx context.Context, s store.Store) ([]store.Space, error) {
	all, err := s.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s store.Space) bool { _, ok := VolumeOf(s); return !ok })
	slices.SortFunc(all, func(a, b store.Space) int {
		if c := strings.Compare(a.Principal, b.Principal); c != 0 {
			return c
		}
		if c := strings.Compare(a.Package, b.Package); c != 0 {
			return c
		}
		return strings.Compare(a.Area, b.Area)
	})
	return all, nil
}
