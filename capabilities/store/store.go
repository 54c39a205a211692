// Package store is the contract between a call's transaction and what keeps its
// effects: snapshot reads and one Commit.
//
// A guest never runs inside a transaction of the engine that implements the
// store. A [Snapshot] is a moment, and reading it holds nothing: what was
// replaced since is kept until [Store.Prune] removes it. A [Commit] carries all
// that the call rests on (guards) and all that it leaves (writes, records), and
// is done as a whole or not at all.
//
// Every key carries principal and package. What the host keeps beside the data
// of guests (idempotency records, undo records, messages of the outbox, redo of
// participants, parked commits) are keys in areas that no guest can name.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// Errors of stores, matched with errors.Is.
var (
	// ErrConflict: a guard no longer holds. Nothing was written; the call has to
	// be run again.
	ErrConflict = errors.New("store changed since the call read it")
	// ErrUnknown: the answer to a commit was lost, and the store cannot be asked
	// whether it was done. Committing the same ID again is safe.
	ErrUnknown = errors.New("store did not answer: outcome unknown")
	// ErrGone: a blob, or what a snapshot has to show, is no longer kept.
	ErrGone = errors.New("no longer kept")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store closed")
	// ErrTooLarge: a name or a value is larger than a store takes.
	ErrTooLarge = errors.New("too large for the store")
)

// Bounds of what a store takes, in bytes.
const (
	MaxName  = 8 << 10
	MaxValue = 64 << 20
	MaxBlob  = 1 << 20
)

// SnapshotAge is how long a snapshot can be read at least.
const SnapshotAge = time.Hour

// Space is a set of keys of one principal and package. Areas of guests' data
// begin with "kv" or "volume/"; [AreaHost] lists the others.
type Space struct {
	Principal string `json:"principal"`
	Package   string `json:"package"`
	Area      string `json:"area"`
}

// The areas that the host keeps for itself.
const (
	AreaIdempotency = "idempotency"
	AreaUndo        = "undo"
	AreaOutbox      = "outbox"
	AreaRedo        = "redo"
	AreaParked      = "parked"
	AreaUpkeep      = "upkeep"
)

// Key names a value. Names are sorted by their bytes.
type Key struct {
	Space
	Name string `json:"name"`
}

// Version tells the values that a key has had apart. 0 is that of an absent
// key; any other is never used again, also not after the key was deleted.
type Version uint64

// Entry is what a snapshot has at a key. Version is 0 where there is nothing.
type Entry struct {
	Key
	Version Version
	Class   uint8 // as it was written, see [Write]
	Value   []byte
}

// Range is the keys of a space from From (included) to To (excluded).
type Range struct {
	Space
	From string `json:"from,omitempty"` // empty: from the first
	To   string `json:"to,omitempty"`   // empty: to the last
}

// Prefix returns the range of all names that begin with prefix.
func Prefix(s Space, prefix string) Range {
	r := Range{Space: s, From: prefix}
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			r.To = prefix[:i] + string([]byte{prefix[i] + 1})
			break
		}
	}
	return r
}

// Guard demands that a key still has the version that the call saw; 0: that it
// is still absent.
type Guard struct {
	Key
	Version Version `json:"version"`
}

// RangeGuard demands that a range still holds what the call saw of it: the same
// names in the same versions or, with NamesOnly, the same names in the same
// classes. Digest is [DigestOf] the entries.
type RangeGuard struct {
	Range
	NamesOnly bool   `json:"namesOnly,omitempty"`
	Digest    string `json:"digest"`
}

// DigestOf returns the digest of the entries of a range, which are sorted by
// name, as [RangeGuard] wants it: hex SHA-256.
func DigestOf(entries []Entry, namesOnly bool) string {
	d := NewRangeDigest(namesOnly)
	for _, e := range entries {
		d.Add(e.Name, e.Version, e.Class)
	}
	return d.Sum()
}

// Write is a new value of a key, or its end.
type Write struct {
	Key
	Value  []byte `json:"value,omitempty"`
	Class  uint8  `json:"class,omitempty"` // what a [RangeGuard] of names only sees of the value
	Delete bool   `json:"delete,omitempty"`
	// Blobs are those that the value names: they are kept as long as it is.
	Blobs []Digest `json:"blobs,omitempty"`
	// Expires is when the key is absent without being deleted, by the clock of the
	// store. Zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Digest is the SHA-256 of a blob.
type Digest [sha256.Size]byte

// String returns the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a digest in hex.
func (d *Digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) {
		return errors.New("digest: want 64 hexadecimal digits")
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Commit is what is done as a whole or not at all.
type Commit struct {
	// ID names the commit and is not empty. One that was done already, within a day
	// at least, is not done again: the store answers as it did then.
	ID      string       `json:"id"`
	Time    time.Time    `json:"time"`
	Guards  []Guard      `json:"guards,omitempty"`
	Ranges  []RangeGuard `json:"ranges,omitempty"`
	Writes  []Write      `json:"writes,omitempty"` // at most one a key
	Records []Record     `json:"records,omitempty"`
}

// Snapshot reads the store as it was at one moment. It holds nothing and can be
// read for [SnapshotAge]; later it may return [ErrGone], but never what was not so
// at its moment. It is safe for concurrent use.
type Snapshot interface {
	// Get returns the entries of keys, in their order, each as it was; Version 0
	// for what is absent or has expired.
	Get(ctx context.Context, keys ...Key) ([]Entry, error)
	// Scan returns the first entries of a range, sorted by name, at most limit; a
	// limit of 0 or less returns none.
	Scan(ctx context.Context, r Range, limit int) ([]Entry, error)
}

// Store keeps what calls leave. It is safe for concurrent use, also by several
// processes on the same data.
type Store interface {
	// Snapshot returns the store as it is now: with all commits that were
	// answered before.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Commit does c and returns the version that its writes have. It returns
	// [ErrConflict], [ErrUnknown], [ErrGone] where a write names a blob that is not
	// kept, or what the engine says; but for the second one, nothing was done. A
	// commit that waits is given up when ctx ends; one that is being written is
	// completed or unknown. Conflicts inside the engine that say nothing about the
	// guards are tried again.
	Commit(ctx context.Context, c *Commit) (Version, error)
	// Usage returns what the live keys of a space take, about.
	Usage(ctx context.Context, s Space) (Usage, error)
	// Spaces returns the spaces that have live keys.
	Spaces(ctx context.Context) ([]Space, error)

	Blobs
	Journal

	// Prune removes what nobody needs any more: versions that were replaced, blobs
	// that nothing names, keys that expired, records that are too old.
	Prune(ctx context.Context, p Prune) error
	Close() error
}

// Meter tells what spaces take, as a [Store] does.
type Meter interface {
	Usage(ctx context.Context, s Space) (Usage, error)
}

// Usage is what the live keys of a space take.
type Usage struct {
	Keys  int64
	Bytes int64 // of names and values, and of the blobs that the values name
}

// Blobs keeps contents by their digest. A blob that no committed value names is
// kept for a day at least.
type Blobs interface {
	// PutBlob keeps data, durably, and returns its digest.
	PutBlob(ctx context.Context, data []byte) (Digest, error)
	// Blob returns a blob, or [ErrGone]. What it returns has that digest.
	Blob(ctx context.Context, d Digest) ([]byte, error)
}

// Prune says what may be removed. The zero value removes only what is never
// needed.
type Prune struct {
	Now time.Time
	// Replaced is how long versions are kept after they were replaced; at least, and
	// by default, [SnapshotAge].
	Replaced time.Duration
	// Records is how long records of the journal are kept; 0: for ever.
	Records time.Duration
	// RecordBytes is how much the journal may take; 0: no bound.
	RecordBytes int64
}
