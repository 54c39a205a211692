package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// KeyChange is what a call did to one key. Name is the key's name in the store.
type KeyChange struct {
	Name string
	Was  KeyValue
	Left KeyValue
}

// KeyValue is what there is at a key. The zero value is nothing.
type KeyValue struct {
	Exists bool
	Data   []byte
}

func (v KeyValue) state() State {
	if !v.Exists {
		return State{Kind: Absent}
	}
	return State{Kind: Value, Size: int64(len(v.Data)), Digest: sha256.Sum256(v.Data)}
}

// same reports whether there is what a state says.
func (v KeyValue) same(s State) bool {
	is := v.state()
	return is.Kind == s.Kind && is.Size == s.Size && is.Digest == s.Digest
}

// changedKeys returns those that were changed in fact, sorted.
func changedKeys(keys []KeyChange) []KeyChange {
	list := slices.DeleteFunc(slices.Clone(keys), func(k KeyChange) bool {
		return k.Was.Exists == k.Left.Exists && bytes.Equal(k.Was.Data, k.Left.Data)
	})
	slices.SortFunc(list, func(a, b KeyChange) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// key records one key.
func (b *builder) key(ctx context.Context, k KeyChange) error {
	if !b.room(k.Name, k.Name) {
		return nil
	}
	r := Key{Name: k.Name, Was: k.Was.state(), Left: k.Left.state()}
	if k.Was.Exists {
		c, err := b.value(ctx, k.Was.Data)
		var why *lostError
		switch {
		case errors.As(err, &why):
			b.record.Lose(k.Name, why.why)
		case err != nil:
			return err
		}
		r.Was.Content = c
	}
	b.record.Keys = append(b.record.Keys, r)
	return nil
}

// value keeps a value.
func (c *collector) value(ctx context.Context, data []byte) (*Content, error) {
	size := int64(len(data))
	switch {
	case size == 0:
		return &Content{}, nil
	case c.short(size):
		return &Content{Inline: bytes.Clone(data)}, nil
	case !c.take(size) || !c.list(chunks(size, chunkSize), chunkText+digestText):
		return nil, &lostError{WhyLarge}
	}
	out := &Content{Chunk: chunkSize}
	for from := int64(0); from < size; from += chunkSize {
		d, err := c.blobs.PutBlob(ctx, data[from:min(from+chunkSize, size)])
		if err != nil {
			return nil, err
		}
		out.Chunks = append(out.Chunks, Chunk{Blob: d})
	}
	return out, nil
}

// Keys is the overlay of keys that a call is taken back in. Names are those in
// the store.
type Keys interface {
	Get(ctx context.Context, name string) (value []byte, ok bool, err error)
	Put(ctx context.Context, name string, value []byte) error
	Delete(ctx context.Context, name string) error
}

// checkKeys finds keys that are not as the call left them.
func (r *restoring) checkKeys(ctx context.Context) error {
	for _, k := range r.rec.Keys {
		value, ok, err := r.opts.Keys.Get(ctx, k.Name)
		if err != nil {
			return keyError(k.Name, err)
		}
		is := KeyValue{ok, value}
		switch {
		case is.same(k.Left):
		case !ok:
			r.changed.add("", k.Name, NowGone)
		case k.Left.Kind == Absent:
			r.changed.add("", k.Name, NowThere)
		default:
			r.changed.add("", k.Name, OtherContent)
		}
	}
	return nil
}

// putKeys puts back what was in keys.
func (r *restoring) putKeys(ctx context.Context) error {
	for _, k := range r.rec.Keys {
		if k.Was.Kind == Absent {
			if err := r.opts.Keys.Delete(ctx, k.Name); err != nil {
				return keyError(k.Name, err)
			}
			continue
		}
		data, err := old{r.opts.Blobs, k.Name}.all(ctx, k.Was, nil)
		if err != nil {
			return err
		}
		if store.Digest(sha256.Sum256(data)) != k.Was.Digest {
			return &GoneError{k.Name, k.Was.Digest}
		}
		if err := r.opts.Keys.Put(ctx, k.Name, data); err != nil {
			return keyError(k.Name, err)
		}
	}
	return nil
}
