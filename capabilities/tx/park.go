package tx

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Errors of parking.
var (
	// ErrNotParked: there is no parked commit of that name, or no longer.
	ErrNotParked = errors.New("no such parked commit")
	// ErrUnparkable: only the process that prepared it can commit it.
	ErrUnparkable = errors.New("cannot be parked")
)

// parkedPiece is how much of a parked commit one blob holds, in bytes.
const parkedPiece = store.MaxBlob

// Parked is a prepared commit that waits in the store to be applied or dropped, by
// whatever process.
type Parked struct {
	Prepared *Prepared    `json:"prepared"`
	With     store.Commit `json:"with"` // what is committed with it
	// Note is the caller's own, for whoever finds the commit.
	Note json.RawMessage `json:"note,omitempty"`
}

// parkedIndex is the value of a parked commit's key.
type parkedIndex struct {
	Bytes int            `json:"bytes"`
	Blobs []store.Digest `json:"blobs"`
}

// all returns its blobs and others, each once.
func (x parkedIndex) all(others []store.Digest) []store.Digest {
	list := append(slices.Clone(x.Blobs), others...)
	slices.SortFunc(list, func(a, b store.Digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

func parkedKey(principal, pkg, id string) store.Key {
	return store.Key{Space: store.Space{Principal: principal, Package: pkg, Area: store.AreaParked}, Name: id}
}

// Park keeps a prepared commit of a principal and package under its ID, until it
// is applied, dropped or expires; zero: never. Nothing of it has happened. It
// returns [store.ErrConflict] where one of that ID is parked, and [ErrUnparkable]
// for a change that puts back links: none is made on the word of data.
//
// Folders are changed as they would have been: what the call read there is guarded
// by the stamps that it saw, and contents are in the change.
func Park(ctx context.Context, s store.Store, principal, pkg string, p Parked, expires time.Time) error {
	if p.Prepared == nil {
		return ErrNotPrepared
	}
	if err := parkable(p.Prepared); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("parked commit: %w", err)
	}
	named, err := p.blobs(ctx)
	if err != nil {
		return fmt.Errorf("parked commit: %w", err)
	}
	index := parkedIndex{Bytes: len(data)}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), parkedPiece)
		d, err := s.PutBlob(ctx, rest[:n])
		if err != nil {
			return fmt.Errorf("parked commit: %w", err)
		}
		index.Blobs, rest = append(index.Blobs, d), rest[n:]
	}
	value, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("parked commit: %w", err)
	}
	k := parkedKey(principal, pkg, p.With.ID)
	_, err = s.Commit(ctx, &store.Commit{
		ID: rand.Text(), Time: p.With.Time, // its own: after it was dropped it may be parked again
		Guards: []store.Guard{{Key: k}},
		Writes: []store.Write{{Key: k, Value: value, Blobs: index.all(named), Expires: expires}},
	})
	if err != nil {
		return fmt.Errorf("parked commit: %w", err)
	}
	return nil
}

// parkable refuses what does not survive encoding.
func parkable(p *Prepared) error {
	for name, c := range p.Changes {
		if c == nil {
			return fmt.Errorf("%w: %q", ErrVolumes, name)
		}
		for _, s := range c.Steps {
			if s.Action == volume.ActLink && s.Base == "" {
				return fmt.Errorf("volume %q: %s: link: %w", name, s.Path, ErrUnparkable)
			}
		}
	}
	return nil
}

// blobs returns those that the commit will name: they are kept as long as it is
// parked, which may be longer than a blob is that nothing names.
func (p *Parked) blobs(ctx context.Context) (list []store.Digest, err error) {
	c := store.Commit{Writes: slices.Clone(p.With.Writes)}
	for name, part := range p.Prepared.Others {
		if part == nil || part.redo == nil {
			continue // it was parked before, or is refused when it is applied
		}
		if err := part.redo.Enlist(ctx, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, w := range c.Writes {
		list = append(list, w.Blobs...)
	}
	return list, nil
}

// LoadParked returns a parked commit, or [ErrNotParked]. Committing what it
// returns takes it out of the store in the same commit, so it is applied once at
// most, and not after it was dropped.
func LoadParked(ctx context.Context, s store.Store, principal, pkg, id string) (Parked, error) {
	now, err := s.Snapshot(ctx)
	if err != nil {
		return Parked{}, fmt.Errorf("parked commit: %w", err)
	}
	k := parkedKey(principal, pkg, id)
	entries, err := now.Get(ctx, k)
	switch {
	case err != nil:
		return Parked{}, fmt.Errorf("parked commit: %w", err)
	case entries[0].Version == 0:
		return Parked{}, fmt.Errorf("%w: %s", ErrNotParked, id)
	}
	p, err := readParked(ctx, s, entries[0].Value)
	if err != nil {
		return Parked{}, fmt.Errorf("parked commit %s: %w", id, err)
	}
	p.With.Guards = append(p.With.Guards, store.Guard{Key: k, Version: entries[0].Version})
	p.With.Writes = append(p.With.Writes, store.Write{Key: k, Delete: true})
	return p, nil
}

func readParked(ctx context.Context, s store.Store, value []byte) (p Parked, err error) {
	var index parkedIndex
	if err := json.Unmarshal(value, &index); err != nil {
		return p, err
	}
	data := make([]byte, 0, index.Bytes)
	for _, d := range index.Blobs {
		piece, err := s.Blob(ctx, d)
		if err != nil {
			return p, err
		}
		data = append(data, piece...)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	if p.Prepared == nil {
		return p, ErrNotPrepared
	}
	return p, nil
}

// DropParked takes a parked commit out of the store without applying it, or
// returns [ErrNotParked].
func DropParked(ctx context.Context, s store.Store, principal, pkg, id string, at time.Time) error {
	now, err := s.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("parked commit: %w", err)
	}
	k := parkedKey(principal, pkg, id)
	entries, err := now.Get(ctx, k)
	switch {
	case err != nil:
		return fmt.Errorf("parked commit: %w", err)
	case entries[0].Version == 0:
		return fmt.Errorf("%w: %s", ErrNotParked, id)
	}
	_, err = s.Commit(ctx, &store.Commit{
		ID: rand.Text(), Time: at,
		Guards: []store.Guard{{Key: k, Version: entries[0].Version}},
		Writes: []store.Write{{Key: k, Delete: true}},
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return fmt.Errorf("%w: %s", ErrNotParked, id)
	case err != nil:
		return fmt.Errorf("parked commit: %w", err)
	}
	return nil
}
