// Package memstore is a store in memory, for tests and for worlds that are thrown
// away: one moment is a number, and every version of a key is kept. It has no
// bounds and nothing to prune.
package memstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Store is a [store.Store] in memory. The zero value is not ready: see [New].
type Store struct {
	mu      sync.Mutex
	moment  store.Version
	keys    map[store.Key][]version
	done    map[string]store.Version // by the ID of the commit
	blobs   map[store.Digest][]byte
	journal []store.Logged
	closed  bool
}

// version is a value that a key had from a moment on.
type version struct {
	born    store.Version
	deleted bool
	write   store.Write
}

// New returns an empty store.
func New() *Store {
	return &Store{keys: map[store.Key][]version{}, done: map[string]store.Version{}, blobs: map[store.Digest][]byte{}}
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	return &snapshot{s, s.moment, time.Now()}, ctx.Err()
}

// Commit does c, or nothing.
func (s *Store) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, store.ErrClosed
	}
	if c.ID == "" {
		return 0, errors.New("commit has no ID")
	}
	if v, ok := s.done[c.ID]; ok {
		return v, nil
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := &snapshot{s, s.moment, time.Now()}
	if err := now.check(c); err != nil {
		return 0, err
	}
	seen := map[store.Key]bool{}
	for _, w := range c.Writes {
		if seen[w.Key] {
			return 0, fmt.Errorf("commit: %q is written twice", w.Name)
		}
		seen[w.Key] = true
	}
	s.moment++
	for _, w := range c.Writes {
		w.Value = slices.Clone(w.Value)
		s.keys[w.Key] = append(s.keys[w.Key], version{s.moment, w.Delete, w})
	}
	for _, r := range c.Records {
		s.log(r)
	}
	s.done[c.ID] = s.moment
	return s.moment, nil
}

func (s *Store) log(r store.Record) {
	l := store.Logged{Writer: "memory", N: uint64(len(s.journal)) + 1, Record: r}
	l.Cursor = store.Cursor(strconv.FormatUint(l.N, 10))
	if len(s.journal) > 0 {
		l.Prev = s.journal[len(s.journal)-1].Hash
	}
	l.Hash = store.ChainHash(l.Prev, l.Writer, l.N, r)
	s.journal = append(s.journal, l)
}

// Usage returns what the live keys of a space take.
func (s *Store) Usage(ctx context.Context, sp store.Space) (store.Usage, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return store.Usage{}, err
	}
	list, err := snap.Scan(ctx, store.Range{Space: sp}, math.MaxInt)
	var u store.Usage
	for _, e := range list {
		u.Keys++
		u.Bytes += int64(len(e.Name) + len(e.Value))
	}
	return u, err
}

// Spaces returns the spaces that have live keys.
func (s *Store) Spaces(ctx context.Context) ([]store.Space, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := &snapshot{s, s.moment, time.Now()}
	seen := map[store.Space]bool{}
	for k := range s.keys {
		if now.entry(k).Version != 0 {
			seen[k.Space] = true
		}
	}
	return slices.Collect(maps.Keys(seen)), ctx.Err()
}

// PutBlob keeps data.
func (s *Store) PutBlob(_ context.Context, data []byte) (store.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := store.Digest(sha256.Sum256(data))
	s.blobs[d] = slices.Clone(data)
	return d, nil
}

// Blob returns a blob.
func (s *Store) Blob(_ context.Context, d store.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[d]
	if !ok {
		return nil, store.ErrGone
	}
	return slices.Clone(b), nil
}

// Append writes records.
func (s *Store) Append(_ context.Context, records ...store.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		s.log(r)
	}
	return nil
}

// Records returns the records after a cursor.
func (s *Store) Records(_ context.Context, after store.Cursor, limit int) ([]store.Logged, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if after != "" {
		var err error
		if n, err = strconv.Atoi(string(after)); err != nil || n < 0 || n > len(s.journal) {
			return nil, fmt.Errorf("cursor %q: unknown", after)
		}
	}
	return slices.Clone(s.journal[n:min(len(s.journal), n+limit)]), nil
}

// Heads returns the end of the one chain.
func (s *Store) Heads(context.Context) ([]store.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.journal) == 0 {
		return nil, nil
	}
	last := s.journal[len(s.journal)-1]
	return []store.Head{{Writer: last.Writer, First: 1, N: last.N, Hash: last.Hash}}, nil
}

// Forget drops all that a principal has, old versions too, as if it had never
// been there.
func (s *Store) Forget(principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.keys, func(k store.Key, _ []version) bool { return k.Principal == principal })
}

// Prune does nothing.
func (s *Store) Prune(context.Context, store.Prune) error { return nil }

// Close makes the store refuse everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
