package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"time"
)

// Record is one record of the journal. Data is what the host wrote, JSON.
type Record struct {
	Time time.Time `json:"time"`
	Data []byte    `json:"data"`
}

// Logged is a record as the journal keeps it: record N (from 1) of the chain of
// one writer. Hash is [ChainHash] over Prev, the hash of the one before, and the
// record; Prev of the first one is zero.
type Logged struct {
	Cursor Cursor
	Writer string
	N      uint64
	Prev   Digest
	Hash   Digest
	Record
}

// Cursor is a place in the journal, in the order in which readers see records.
// The empty cursor is before the first.
type Cursor string

// Head is the end of a writer's chain: what the journal should end with. First
// is the oldest record that is kept, and Prev the hash that it follows.
type Head struct {
	Writer string
	First  uint64
	Prev   Digest
	N      uint64
	Hash   Digest
}

// Journal is the append-only log of a store. Each open store writes to chains of
// its own.
type Journal interface {
	// Append writes records that belong to no commit, durably.
	Append(ctx context.Context, records ...Record) error
	// Records returns at most limit records after a cursor. A record that was
	// written is returned once to a reader that goes on from the last cursor, and
	// never skipped.
	Records(ctx context.Context, after Cursor, limit int) ([]Logged, error)
	// Heads returns the ends of all chains.
	Heads(ctx context.Context) ([]Head, error)
}

// ChainHash returns the hash of a record in the chain of a writer.
func ChainHash(prev Digest, writer string, n uint64, r Record) Digest {
	h := sha256.New()
	h.Write(prev[:])
	text(h, writer)
	number(h, n)
	number(h, uint64(r.Time.UnixNano()))
	h.Write(r.Data)
	return Digest(h.Sum(nil))
}

// RangeDigest is the digest of a range in the making.
type RangeDigest struct {
	h         hash.Hash
	namesOnly bool
}

// NewRangeDigest returns the digest of nothing yet.
func NewRangeDigest(namesOnly bool) *RangeDigest { return &RangeDigest{sha256.New(), namesOnly} }

// Add adds the next entry of the range, in the order of names.
func (d *RangeDigest) Add(name string, v Version, class uint8) {
	text(d.h, name)
	if d.namesOnly {
		number(d.h, uint64(class))
		return
	}
	number(d.h, uint64(v))
}

// Sum returns the digest of what was added, in hex.
func (d *RangeDigest) Sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

// text writes a length and the text, so that no two sequences are written alike.
func text(h hash.Hash, s string) {
	number(h, uint64(len(s)))
	h.Write([]byte(s))
}

func number(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
