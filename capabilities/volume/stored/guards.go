package stored

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// guards compares what a change saw with the snapshot, which tells what the
// paths are, and returns what has to hold when it is committed.
func (r *redo) guards(ctx context.Context) error {
	paths := make([]string, len(r.change.Guards))
	for i, g := range r.change.Guards {
		paths[i] = g.Path
	}
	found, err := r.tree.nodes(ctx, paths)
	if err != nil {
		return err
	}
	for i, g := range r.change.Guards {
		n := found[i]
		switch st := n.stamp(); {
		case st.Version != g.Stamp.Version:
			return fmt.Errorf("%s: %w", g.Path, volume.ErrConflict)
		case !st.Same(g.Stamp):
			return fmt.Errorf("%s: not what was there: %w", g.Path, capabilities.EINVAL)
		}
		r.guard(g.Path, n)
	}
	return nil
}

// guard demands that a path stays what it is. The root does.
func (r *redo) guard(path string, n node) {
	if _, twice := r.was[path]; twice {
		return
	}
	r.was[path] = n
	if path != "." {
		r.held = append(r.held, store.Guard{Key: r.tree.key(entryName(path)), Version: n.version})
	}
}

// listings does the same for directories that the change has listed.
func (r *redo) listings(ctx context.Context) error {
	for _, l := range r.change.Listings {
		list, err := r.listing(ctx, l.Path)
		if err != nil {
			return err
		}
		if l.Hidden || volume.ListingDigest(l.Path, list) != l.Digest {
			return fmt.Errorf("%s: %w", l.Path, volume.ErrConflict)
		}
	}
	return nil
}

// listing demands that a directory keeps its names, which it returns.
func (r *redo) listing(ctx context.Context, dir string) ([]volume.Entry, error) {
	n, err := r.tree.node(ctx, dir)
	switch {
	case err != nil:
		return nil, err
	case !n.exists || n.kind != volume.Dir:
		return nil, fmt.Errorf("%s: %w", dir, volume.ErrConflict)
	}
	list, err := r.tree.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	r.guard(dir, n)
	if _, twice := r.listed[dir]; twice {
		return list, nil
	}
	r.listed[dir] = struct{}{}
	prefix, digest := prefixOf(dir), store.NewRangeDigest(true)
	for _, e := range list {
		digest.Add(prefix+e.Name, 0, classOf(e.Kind))
	}
	r.ranges = append(r.ranges, store.RangeGuard{
		Range: store.Prefix(r.tree.options.Space, prefix), NamesOnly: true, Digest: digest.Sum(),
	})
	return list, nil
}

// sort puts the guards into the order of their keys, which is the same in every
// process.
func (r *redo) sort() {
	slices.SortFunc(r.held, func(a, b store.Guard) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.ranges, func(a, b store.RangeGuard) int { return strings.Compare(a.From, b.From) })
}
