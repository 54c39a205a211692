package kv

import (
	"context"
	"math"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// written is the version of what a call wrote, for who reads its result. No store
// counts that far.
const written store.Version = math.MaxUint64

// Result returns the keys that the call would leave, for who judges it: what is
// read through it is no effect of the call, and the call does not rest on it. The
// overlay must not be written to any more.
func (o *Overlay) Result() Base { return result{o} }

// Shadow returns the view of a second run of the call, over what this one leaves
// and with its quota. This one must not be written to any more.
func (o *Overlay) Shadow(b *Budget) *Overlay {
	return NewOverlay(o.Result(), Options{Budget: b, Quota: o.opts.Quota, Held: left{o}})
}

// left tells what the space holds with what the call wrote.
type left struct{ o *Overlay }

func (l left) Usage(ctx context.Context, _ store.Space) (store.Usage, error) { return l.o.Usage(ctx) }

type result struct{ o *Overlay }

func (r result) Get(ctx context.Context, key string) (value []byte, v store.Version, ok bool, err error) {
	w, own := r.o.writes[key]
	switch {
	case !own:
		return r.o.base.Get(ctx, key)
	case w.deleted:
		return nil, 0, false, nil
	}
	return w.value, written, true, nil
}

func (r result) Scan(ctx context.Context, from, to string, limit int) ([]Entry, error) {
	if to != "" && from >= to || limit <= 0 {
		return nil, nil
	}
	var list []Entry
	_, err := r.o.walk(ctx, from, to, func(e Entry, _ int64) bool {
		if e.Version == 0 {
			e.Version = written
		}
		list = append(list, e)
		return len(list) < limit
	})
	return list, err
}
