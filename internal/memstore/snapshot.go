package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// snapshot is the store at a moment.
type snapshot struct {
	s      *Store
	moment store.Version
	now    time.Time
}

// entry returns what a key had; the store is locked.
func (n *snapshot) entry(k store.Key) store.Entry {
	e := store.Entry{Key: k}
	for _, v := range slices.Backward(n.s.keys[k]) {
		if v.born > n.moment {
			continue
		}
		if !v.deleted && (v.write.Expires.IsZero() || n.now.Before(v.write.Expires)) {
			e.Version, e.Class, e.Value = v.born, v.write.Class, slices.Clone(v.write.Value)
		}
		break
	}
	return e
}

// entries returns the live entries of a range; the store is locked.
func (n *snapshot) entries(r store.Range) []store.Entry {
	var list []store.Entry
	for k := range n.s.keys {
		if k.Space != r.Space || k.Name < r.From || r.To != "" && k.Name >= r.To {
			continue
		}
		if e := n.entry(k); e.Version != 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b store.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// check returns ErrConflict when a guard does not hold; the store is locked.
func (n *snapshot) check(c *store.Commit) error {
	for _, g := range c.Guards {
		if n.entry(g.Key).Version != g.Version {
			return store.ErrConflict
		}
	}
	for _, r := range c.Ranges {
		if store.DigestOf(n.entries(r.Range), r.NamesOnly) != r.Digest {
			return store.ErrConflict
		}
	}
	return nil
}

// Get returns the entries of keys.
func (n *snapshot) Get(ctx context.Context, keys ...store.Key) ([]store.Entry, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	var list []store.Entry
	for _, k := range keys {
		list = append(list, n.entry(k))
	}
	return list, ctx.Err()
}

// Scan returns the first entries of a range.
func (n *snapshot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	list := n.entries(r)
	return list[:min(len(list), max(limit, 0))], ctx.Err()
}
