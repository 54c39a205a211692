package kv

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// The bounds of keys and values, in bytes. Keys have one at least.
const (
	MaxKey   = 1024
	MaxValue = 1 << 20
)

// ErrFull: the space has no room for what is written.
var ErrFull = errors.New("no room for more keys")

// Options of an [Overlay]. The zero Options allow looking and no change.
type Options struct {
	Space  store.Space // whose keys these are, for [Change]
	Budget *Budget     // what the call may hold, shared by its overlays; nil: a zero Budget of its own
	// Quota is how much the space may hold after the call; by default nothing may
	// be added to it. Calls that run at the same time can exceed it together.
	Quota store.Usage
	// Held tells what the space held at the start. It is asked once, when the call
	// first adds something; nil: nothing was held.
	Held store.Meter
}

// Overlay is one call's view of keys: what it wrote over what was there. It
// remembers what was looked at. It is not safe for concurrent use, as guests are
// single threaded.
type Overlay struct {
	base   Base
	opts   Options
	held   store.Usage // by the space, at the start
	asked  bool        // held is known
	grown  store.Usage // by the call
	writes map[string]*write
	order  []string // the keys of writes, sorted
	points map[string]store.Version
	ranges map[span]looked
	reads  map[string]int64 // bytes of values read, by key
	failed error            // of the base, the first one
}

// write is what the call made of a key.
type write struct {
	base      origin
	value     []byte // nil where it is deleted
	deleted   bool
	replaced  bool // since the base otherwise than by appending and incrementing
	appended  int64
	increased bool
}

// origin is what the base has at a key: enough to tell whether a value is the
// same, without holding it.
type origin struct {
	ok     bool
	size   int
	digest [sha256.Size]byte
	number int64 // where it is one
	counts bool  // it is one
}

// NewOverlay returns the view of a call that wrote nothing yet.
func NewOverlay(b Base, o Options) *Overlay {
	if o.Budget == nil {
		o.Budget = &Budget{}
	}
	return &Overlay{base: b, opts: o}
}

// Get returns the value of a key and whether there is one.
func (o *Overlay) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if value, ok, err = o.look(ctx, key); err != nil {
		return nil, false, err
	}
	if n, known := o.reads[key]; !known || int64(len(value)) > n {
		lazymap.Put(&o.reads, key, int64(len(value)))
	}
	return slices.Clone(value), ok, nil
}

// look returns what is at a key, and remembers that the call rests on it. It is
// no effect by itself: changes look too.
func (o *Overlay) look(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if err := CheckKey(key); err != nil {
		return nil, false, err
	}
	if w, ok := o.writes[key]; ok {
		return w.value, !w.deleted, nil
	}
	value, v, ok, err := o.base.Get(ctx, key)
	if err != nil {
		return nil, false, o.fail(err)
	}
	if err := o.saw(key, v); err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

// saw remembers the version of a key.
func (o *Overlay) saw(key string, v store.Version) error {
	if _, known := o.points[key]; known {
		return nil
	}
	if err := o.opts.Budget.take(cost{seen: pointCost + int64(len(key))}); err != nil {
		return err
	}
	lazymap.Put(&o.points, key, v)
	return nil
}

// fail remembers that the base could not be read, the end of the call's context
// included: a view with holes comes to no change.
func (o *Overlay) fail(err error) error {
	if o.failed == nil {
		o.failed = err
	}
	return err
}

// Usage returns what the space holds with what the call wrote.
func (o *Overlay) Usage(ctx context.Context) (store.Usage, error) {
	if !o.asked && o.opts.Held != nil {
		held, err := o.opts.Held.Usage(ctx, o.opts.Space)
		if err != nil {
			return store.Usage{}, o.fail(err)
		}
		o.held = held
	}
	o.asked = true
	return store.Usage{Keys: o.held.Keys + o.grown.Keys, Bytes: o.held.Bytes + o.grown.Bytes}, nil
}

// room returns [ErrFull] where the space may not grow by so much.
func (o *Overlay) room(ctx context.Context, more store.Usage) error {
	if more.Keys <= 0 && more.Bytes <= 0 {
		return nil
	}
	now, err := o.Usage(ctx)
	switch {
	case err != nil:
		return err
	case more.Keys > 0 && more.Keys > o.opts.Quota.Keys-now.Keys,
		more.Bytes > 0 && more.Bytes > o.opts.Quota.Bytes-now.Bytes:
		return ErrFull
	}
	return nil
}

// CheckKey returns EINVAL for an empty key and ENAMETOOLONG for one that is too
// long.
func CheckKey(key string) error {
	switch {
	case key == "":
		return capabilities.EINVAL
	case len(key) > MaxKey:
		return capabilities.ENAMETOOLONG
	}
	return nil
}
