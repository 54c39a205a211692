package kv

import (
	"context"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// Pages of the base are read a few entries at a time, as values may be long; more
// where they turn out to be short.
const (
	firstPage = 16
	lastPage  = 1024
	pageBytes = 4 << 20
)

// span is a range of keys that was looked at; an empty to is its end.
type span struct{ from, to string }

// looked is what the base had in a span.
type looked struct {
	digest string
	bytes  int64 // of values that the call saw in it
	asked  string
}

// Scan returns the entries from a key (included) to another (excluded; empty: to
// the last), sorted by their bytes, at most limit. What the call wrote is in it,
// with version 0. The call then rests on that part of the range which the answer
// tells of: to the last key where limit cut it.
func (o *Overlay) Scan(ctx context.Context, from, to string, limit int) ([]Entry, error) {
	var list []Entry
	if limit <= 0 {
		return nil, nil
	}
	err := o.Each(ctx, from, to, func(e Entry) bool {
		e.Value = slices.Clone(e.Value)
		list = append(list, e)
		return len(list) < limit
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Each calls visit with each entry of a range, as [Overlay.Scan] returns them,
// until visit returns false; values must not be changed or kept. The call then
// rests on the range up to the last entry that visit was given. It returns
// ENAMETOOLONG for ends that are longer than a key and a byte.
func (o *Overlay) Each(ctx context.Context, from, to string, visit func(Entry) bool) error {
	if max(len(from), len(to)) > MaxKey+1 {
		return capabilities.ENAMETOOLONG
	}
	if to != "" && from >= to {
		return nil
	}
	seen, bytes := span{from, to}, int64(0)
	var spent error
	m, err := o.walk(ctx, from, to, func(e Entry, met int64) bool {
		bytes += int64(len(e.Value))
		if !visit(e) {
			seen.to = e.Key + "\x00"
			return false
		}
		spent = o.affords(seen, met)
		return spent == nil
	})
	switch {
	case err != nil:
		return o.fail(err)
	case spent != nil:
		return spent
	}
	return o.sawRange(seen, looked{m.digest.Sum(), bytes, to}, m.met)
}

// walk calls visit with each entry of a range and how many of the base's have
// been met, until visit returns false.
func (o *Overlay) walk(ctx context.Context, from, to string, visit func(e Entry, met int64) bool) (*merge, error) {
	m := &merge{o: o, pages: pages{base: o.base, from: from, to: to, size: firstPage}, digest: store.NewRangeDigest(false)}
	m.own, _ = slices.BinarySearch(o.order, from)
	for {
		e, ok, err := m.next(ctx, to)
		if err != nil || !ok || !visit(e, m.met) {
			return m, err
		}
	}
}

// affords returns a [*LimitError] once a range is more than the budget has left,
// which a guest must not find out at the end of a long one.
func (o *Overlay) affords(s span, entries int64) error {
	if entries%lastPage != 0 {
		return nil
	}
	c := s.cost(entries)
	if err := o.opts.Budget.take(c); err != nil {
		return err
	}
	return o.opts.Budget.take(cost{seen: -c.seen}) // taken in earnest once the range has an end
}

func (s span) cost(entries int64) cost {
	return cost{seen: rangeCost + int64(len(s.from)+len(s.to)) + entryCost*entries}
}

// sawRange remembers what was in a range. Looking again, at the same snapshot,
// shows the same.
func (o *Overlay) sawRange(s span, l looked, entries int64) error {
	if old, known := o.ranges[s]; known {
		old.bytes = max(old.bytes, l.bytes)
		o.ranges[s] = old
		return nil
	}
	if err := o.opts.Budget.take(s.cost(entries)); err != nil {
		return err
	}
	lazymap.Put(&o.ranges, s, l)
	return nil
}

// merge walks through the base and what was written over it.
type merge struct {
	o      *Overlay
	pages  pages
	own    int // the next one of o.order
	digest *store.RangeDigest
	met    int64 // entries of the base that are in the digest
}

// next returns the next entry. What the base has up to it is in the digest then,
// and nothing else.
func (m *merge) next(ctx context.Context, to string) (Entry, bool, error) {
	for {
		b, found, err := m.pages.peek(ctx)
		if err != nil {
			return Entry{}, false, err
		}
		key, written := m.written(to)
		switch {
		case !found && !written:
			return Entry{}, false, nil
		case found && (!written || b.Key <= key):
			m.pages.skip()
			m.met++
			m.digest.Add(StoreName(b.Key), b.Version, 0)
		}
		if !written || found && b.Key < key {
			return b, true, nil
		}
		m.own++
		if w := m.o.writes[key]; !w.deleted {
			return Entry{Key: key, Value: w.value}, true, nil
		}
	}
}

// written returns the next key in the range that the call wrote.
func (m *merge) written(to string) (string, bool) {
	if m.own == len(m.o.order) {
		return "", false
	}
	key := m.o.order[m.own]
	return key, to == "" || strings.Compare(key, to) < 0
}

// pages reads a range of the base piece by piece.
type pages struct {
	base     Base
	from, to string
	size     int
	page     []Entry
	ended    bool
}

// peek returns the next entry without moving on.
func (p *pages) peek(ctx context.Context) (Entry, bool, error) {
	if len(p.page) == 0 && !p.ended {
		list, err := p.base.Scan(ctx, p.from, p.to, p.size)
		if err != nil {
			return Entry{}, false, err
		}
		p.page, p.ended = list, len(list) < p.size
		if len(list) > 0 {
			p.from = list[len(list)-1].Key + "\x00"
			p.size = nextSize(list)
		}
	}
	if len(p.page) == 0 {
		return Entry{}, false, nil
	}
	return p.page[0], true, nil
}

// skip moves on.
func (p *pages) skip() { p.page = p.page[1:] }

// nextSize returns how many entries to read after a page.
func nextSize(list []Entry) int {
	bytes := 1
	for _, e := range list {
		bytes += len(e.Key) + len(e.Value)
	}
	return min(max(pageBytes/(bytes/len(list)+1), firstPage), lastPage, 4*len(list))
}
