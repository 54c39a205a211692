package kv

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// Change is what a call leaves of keys and what it rests on: data that can be
// kept as JSON and committed later, or never.
type Change struct {
	Guards []store.Guard      `json:"guards,omitempty"`
	Ranges []store.RangeGuard `json:"ranges,omitempty"`
	Writes []store.Write      `json:"writes,omitempty"`
}

// Empty reports whether nothing is written.
func (c *Change) Empty() bool { return len(c.Writes) == 0 }

// Change returns the difference from the base, with guards for all that was
// looked at, each sorted by name. It is a copy: the overlay can be used further. A
// key that was put back to its old value is no difference. It returns the error
// that the base had, if it had one.
func (o *Overlay) Change() (*Change, error) {
	if o.failed != nil {
		return nil, o.failed
	}
	c := &Change{}
	for _, key := range lazymap.Sorted(o.points) {
		c.Guards = append(c.Guards, store.Guard{Key: o.storeKey(key), Version: o.points[key]})
	}
	for _, s := range o.spans() {
		c.Ranges = append(c.Ranges, store.RangeGuard{
			Range: storeRange(o.opts.Space, s.from, s.to), Digest: o.ranges[s].digest,
		})
	}
	for _, key := range o.order {
		w := o.writes[key]
		if w.same() {
			continue
		}
		c.Writes = append(c.Writes, store.Write{Key: o.storeKey(key), Value: slices.Clone(w.value), Delete: w.deleted})
	}
	return c, nil
}

// Untouched reports whether the call neither looked at the keys nor changed any:
// its change says nothing then, guards included.
func (o *Overlay) Untouched() bool {
	return o.failed == nil && len(o.points)+len(o.ranges)+len(o.writes) == 0
}

// Space returns where in the store the keys are.
func (o *Overlay) Space() store.Space { return o.opts.Space }

func (o *Overlay) storeKey(key string) store.Key {
	return store.Key{Space: o.opts.Space, Name: StoreName(key)}
}

// spans returns the ranges that were looked at, in order.
func (o *Overlay) spans() []span {
	if len(o.ranges) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(o.ranges), func(a, b span) int {
		return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
	})
}
