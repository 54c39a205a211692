package undo

import (
	"context"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// managed is a volume in a store, that calls are committed to.
type managed struct {
	s     *memstore.Store
	count int
}

func (m *managed) tree(t tester) *stored.Tree {
	t.Helper()
	snap, err := m.s.Snapshot(context.Background())
	must(t, err)
	return stored.New(context.Background(), stored.Options{
		Reader: stored.At(snap), Blobs: m.s, Space: stored.SpaceOf("local", "notes", "data"),
	})
}

func (m *managed) commit(t tester, b *stored.Tree, c *volume.Change) {
	t.Helper()
	m.count++
	guards, ranges, writes, err := b.Writes(context.Background(), c)
	must(t, err)
	_, err = m.s.Commit(context.Background(), &store.Commit{ID: strconv.Itoa(m.count), Guards: guards, Ranges: ranges, Writes: writes})
	must(t, err)
}

// call commits what do does, and returns the record of it.
func (m *managed) call(t tester, days int, do func(g guest)) *Record {
	t.Helper()
	b := m.tree(t)
	g := over(b, days)
	do(g)
	c, err := g.Change()
	must(t, err)
	rec := recorded(t, m.s, b, g)
	m.commit(t, b, c)
	return rec
}

// On a managed volume that calls are committed to, undo restores what was there,
// and its own undo what the call left.
func TestUndoStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &managed{s: memstore.New()}
		m.call(t, 1, func(g guest) { lives(t, g) })
		before := image(t, m.tree(t))
		rec := m.call(t, 2, func(g guest) { lives(t, g) })
		left := image(t, m.tree(t))
		if !rec.Complete() {
			t.Fatalf("lost %v", rec.Lost)
		}
		back := m.call(t, 3, func(g guest) { must(t, Restore(context.Background(), rec, only(g, m.s))) })
		sameImage(t, "undo", image(t, m.tree(t)), before)
		m.call(t, 4, func(g guest) { must(t, Restore(context.Background(), back, only(g, m.s))) })
		sameImage(t, "redo", image(t, m.tree(t)), left)
	})
}
