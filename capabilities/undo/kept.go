package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// DefaultRetention is how long a record is kept.
const DefaultRetention = 30 * 24 * time.Hour

// The index by call id is in one space a principal, because who takes back a call
// knows its id and not its package. No package has this name.
const indexPackage = "_calls"

// Space returns where the records of a principal and package are.
func Space(principal, pkg string) store.Space {
	return store.Space{Principal: principal, Package: pkg, Area: store.AreaUndo}
}

// Spaces returns the spaces of a store that have records, in no order.
func Spaces(ctx context.Context, s store.Store) ([]store.Space, error) {
	all, err := s.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(sp store.Space) bool { return sp.Area != store.AreaUndo || sp.Package == indexPackage }), nil
}

// recordKey returns where a record is: the newest are the first by name.
func recordKey(r *Record) store.Key {
	name := fmt.Sprintf("%016x/%s", uint64(math.MaxInt64)-uint64(r.Time.UnixNano()), r.CallID)
	return store.Key{Space: Space(r.Principal, r.Package), Name: name}
}

func indexKey(principal, callID string) store.Key {
	return store.Key{Space: Space(principal, indexPackage), Name: callID}
}

// pointer is an entry of the index.
type pointer struct {
	Package string `json:"package"`
	Name    string `json:"name"`
}

// Writes returns what keeps the record, for the commit of its call. It is kept for
// the retention ([DefaultRetention] for none) from the call's time on, and as long
// as it is held; it sets Expires. [ErrInvalid], and [store.ErrTooLarge] for a
// record that no store takes.
func (r *Record) Writes(retention time.Duration) ([]store.Write, error) {
	if retention <= 0 {
		retention = DefaultRetention
	}
	r.Expires = plain(r.Time.Add(retention))
	if r.HoldUntil.After(r.Expires) {
		r.Expires = plain(r.HoldUntil)
	}
	w, err := r.write()
	if err != nil {
		return nil, err
	}
	at, err := json.Marshal(pointer{r.Package, w.Name})
	if err != nil {
		return nil, err
	}
	return []store.Write{w, {Key: indexKey(r.Principal, r.CallID), Value: at, Expires: r.Expires}}, nil
}

func (r *Record) write() (store.Write, error) {
	b, err := r.Encode()
	switch {
	case err != nil:
		return store.Write{}, err
	case r.Time.Before(time.Unix(0, 0)):
		return store.Write{}, invalid("time %v", r.Time)
	case len(b) > store.MaxValue:
		return store.Write{}, fmt.Errorf("undo record: %w", store.ErrTooLarge)
	}
	return store.Write{Key: recordKey(r), Value: b, Blobs: r.Blobs(), Expires: r.Expires}, nil
}

// Kept is a record as a store has it.
type Kept struct {
	*Record
	Guard store.Guard // holds while nobody has marked or removed the record
	Bytes int64       // what it takes, with its blobs
}

// Mark returns what marks the record as taken back by another call, for the commit
// of that call, together with k.Guard: only one of two that try at the same time is
// committed. An empty call takes the mark away, when that other call is itself
// taken back. The record is kept as long as before.
func (k *Kept) Mark(call string) (store.Write, error) {
	marked := *k.Record
	marked.UndoneBy = call
	return marked.write()
}

// Find returns the record of a call of a principal, or [ErrNotFound].
func Find(ctx context.Context, s store.Snapshot, principal, callID string) (*Kept, error) {
	if !validID(callID) {
		return nil, fmt.Errorf("call %q: %w", callID, ErrNotFound)
	}
	at, err := one(ctx, s, indexKey(principal, callID))
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", callID, err)
	}
	var p pointer
	if err := json.Unmarshal(at.Value, &p); err != nil {
		return nil, fmt.Errorf("call %q: %w: %w", callID, ErrInvalid, err)
	}
	e, err := one(ctx, s, store.Key{Space: Space(principal, p.Package), Name: p.Name})
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", callID, err)
	}
	k, err := kept(e)
	if err == nil && k.CallID != callID {
		err = invalid("it is that of %q", k.CallID)
	}
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", callID, err)
	}
	return k, nil
}

// one returns an entry, or [ErrNotFound].
func one(ctx context.Context, s store.Snapshot, k store.Key) (store.Entry, error) {
	list, err := s.Get(ctx, k)
	switch {
	case err != nil:
		return store.Entry{}, err
	case len(list) != 1 || list[0].Version == 0:
		return store.Entry{}, ErrNotFound
	}
	return list[0], nil
}

// kept decodes an entry, which must be where its record says.
func kept(e store.Entry) (*Kept, error) {
	r, err := Decode(e.Value)
	if err != nil {
		return nil, err
	}
	if recordKey(r) != e.Key {
		return nil, invalid("it is that of another call")
	}
	return &Kept{r, store.Guard{Key: e.Key, Version: e.Version}, int64(len(e.Value)) + r.Size}, nil
}

// Recent returns the records of a space, the newest first, at most limit. What
// cannot be read is left out, and told of by the error beside the others.
func Recent(ctx context.Context, s store.Snapshot, space store.Space, limit int) ([]*Kept, error) {
	entries, err := s.Scan(ctx, store.Range{Space: space}, limit)
	if err != nil {
		return nil, err
	}
	var list []*Kept
	var errs []error
	for _, e := range entries {
		k, err := kept(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("record %q: %w", e.Name, err))
			continue
		}
		list = append(list, k)
	}
	return list, errors.Join(errs...)
}

const (
	trimPage  = 32 // records are large
	trimTries = 3
)

// Trim keeps the newest records of a space that take at most maxBytes together, and
// removes all that are older but those that are held at a time. A blob that several
// records name counts for each. It returns how many records it removed, also with
// an error.
func Trim(ctx context.Context, s store.Store, space store.Space, maxBytes int64, now time.Time) (removed int, err error) {
	var at trimming
	for tries := 0; ; {
		n, more, err := at.page(ctx, s, space, maxBytes, now)
		removed += n
		switch {
		case (errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown)) && tries < trimTries:
			tries++ // somebody marked or removed one of them, or it was done: the page is read again
		case err != nil || !more:
			return removed, err
		}
	}
}

// trimming is how far a trim has come, from the newest record on.
type trimming struct {
	from string
	used int64
}

// page goes through one page of records, and reports whether there are more.
func (t *trimming) page(ctx context.Context, s store.Store, space store.Space, maxBytes int64, now time.Time) (removed int, more bool, err error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return 0, false, err
	}
	entries, err := snap.Scan(ctx, store.Range{Space: space, From: t.from}, trimPage)
	if err != nil {
		return 0, false, err
	}
	next := *t
	c := &store.Commit{Time: now}
	id := sha256.New()
	for _, e := range entries {
		next.from = e.Name + "\x00"
		bytes, held, callID := weigh(e, now)
		next.used += bytes
		if next.used <= maxBytes || held {
			continue
		}
		fmt.Fprintf(id, "%q %d\n", e.Key, e.Version)
		c.Guards = append(c.Guards, store.Guard{Key: e.Key, Version: e.Version})
		c.Writes = append(c.Writes, store.Write{Key: e.Key, Delete: true},
			store.Write{Key: indexKey(space.Principal, callID), Delete: true})
		removed++
	}
	if removed > 0 {
		c.ID = "undo-trim-" + hex.EncodeToString(id.Sum(nil)) // versions are never used again
		if _, err := s.Commit(ctx, c); err != nil {
			return 0, false, err
		}
	}
	*t = next
	return removed, len(entries) == trimPage, nil
}

// weigh returns what an entry takes, whether it is held, and of which call it is.
// One that cannot be read may be one of a later version, and held.
func weigh(e store.Entry, now time.Time) (bytes int64, held bool, callID string) {
	_, callID, _ = strings.Cut(e.Name, "/")
	k, err := kept(e)
	if err != nil {
		return int64(len(e.Value)), true, callID
	}
	return k.Bytes, k.HoldUntil.After(now), callID
}
