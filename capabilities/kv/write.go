package kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// Put gives a key a value. It returns EFBIG for a value that is too long,
// [ErrFull], or a [*LimitError].
func (o *Overlay) Put(ctx context.Context, key string, value []byte) error {
	old, ok, err := o.look(ctx, key)
	switch {
	case err != nil:
		return err
	case len(value) > MaxValue:
		return capabilities.EFBIG
	case ok && bytes.Equal(old, value):
		return nil
	}
	next := write{value: append([]byte{}, value...), replaced: true}
	return o.set(ctx, key, old, ok, next)
}

// Delete removes a key. One that is not there is no error.
func (o *Overlay) Delete(ctx context.Context, key string) error {
	old, ok, err := o.look(ctx, key)
	if err != nil || !ok {
		return err
	}
	return o.set(ctx, key, old, ok, write{deleted: true, replaced: true})
}

// Append puts data behind the value of a key, which is made where there is none.
// No data changes nothing. It is refused as [Overlay.Put] is.
func (o *Overlay) Append(ctx context.Context, key string, data []byte) error {
	old, ok, err := o.look(ctx, key)
	switch {
	case err != nil:
		return err
	case len(data) > MaxValue-len(old):
		return capabilities.EFBIG
	case len(data) == 0:
		return nil
	}
	next := write{}
	if w := o.writes[key]; w != nil {
		next = *w
	} else {
		old = slices.Clip(old)
	}
	// Behind a value of the overlay's own there may be room: nobody else holds it.
	next.value, next.deleted = append(old, data...), false
	next.appended += int64(len(data))
	return o.set(ctx, key, old, ok, next)
}

// Increment adds to the number that a key holds and returns the sum; a key that
// is not there counts as 0. It returns [ErrNotNumber] or [ErrOverflow] and changes
// nothing, or is refused as [Overlay.Put] is.
func (o *Overlay) Increment(ctx context.Context, key string, by int64) (int64, error) {
	old, ok, err := o.look(ctx, key)
	if err != nil {
		return 0, err
	}
	n, err := sum(old, ok, by)
	if err != nil || by == 0 {
		return n, err
	}
	next := write{}
	if w := o.writes[key]; w != nil {
		next = *w
		// What was no number and became one by appending: the sum keeps nothing of it.
		next.replaced = next.replaced || w.base.ok && !w.base.counts
	}
	next.value, next.deleted, next.increased = strconv.AppendInt(nil, n, 10), false, true
	if err := o.set(ctx, key, old, ok, next); err != nil {
		return 0, err
	}
	return n, nil
}

// set makes next what is at a key where there was old, if there was something.
func (o *Overlay) set(ctx context.Context, key string, old []byte, ok bool, next write) error {
	more, spent := growth(key, old, ok, &next), cost{}
	w, again := o.writes[key]
	if again {
		spent.bytes = int64(len(next.value) - len(w.value))
		next.base = w.base
	} else {
		spent = cost{bytes: int64(len(key) + len(next.value)), keys: 1}
		next.base = originOf(old, ok)
	}
	if next.same() {
		next.replaced, next.appended, next.increased = false, 0, false
	}
	if err := o.room(ctx, more); err != nil {
		return err
	}
	if err := o.opts.Budget.take(spent); err != nil {
		return err
	}
	o.grown.Keys += more.Keys
	o.grown.Bytes += more.Bytes
	lazymap.Put(&o.writes, key, &next)
	if !again {
		at, _ := slices.BinarySearch(o.order, key)
		o.order = slices.Insert(o.order, at, key)
	}
	return nil
}

// growth returns by how much the space grows.
func growth(key string, old []byte, ok bool, next *write) store.Usage {
	var u store.Usage
	if ok {
		u.Keys--
		u.Bytes -= int64(len(StoreName(key)) + len(old))
	}
	if !next.deleted {
		u.Keys++
		u.Bytes += int64(len(StoreName(key)) + len(next.value))
	}
	return u
}

func originOf(value []byte, ok bool) origin {
	if !ok {
		return origin{}
	}
	n, err := Number(value)
	return origin{true, len(value), sha256.Sum256(value), n, err == nil}
}

// same reports whether the key is left as the base has it.
func (w *write) same() bool {
	if w.deleted || !w.base.ok {
		return w.deleted && !w.base.ok
	}
	return len(w.value) == w.base.size && sha256.Sum256(w.value) == w.base.digest
}
