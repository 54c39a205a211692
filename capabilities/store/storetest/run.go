// Package storetest is what every store has to do, as tests.
//
// A store under test that also has CorruptBlob, see [Corrupter], is tested for
// the blobs that the disk changed.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Corrupter changes a kept blob behind the back of the store.
type Corrupter interface {
	CorruptBlob(t testing.TB, d store.Digest)
}

// Run tests stores. Each call of open returns a new, empty one, which open
// closes at the end of the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*harness)
	}{
		{"get", testGet},
		{"names", testNames},
		{"scan", testScan},
		{"snapshot", testSnapshot},
		{"spaces", testSpaces},
		{"versions", testVersions},
		{"guards", testGuards},
		{"absence", testAbsence},
		{"ranges", testRanges},
		{"range names", testRangeNames},
		{"range bounds", testRangeBounds},
		{"atomic", testAtomic},
		{"duplicate keys", testDuplicates},
		{"same id", testSameID},
		{"hot keys", testHotKeys},
		{"serialisable", testSerialisable},
		{"expiry", testExpiry},
		{"bounds", testBounds},
		{"large values", testLarge},
		{"cancelled", testCancelled},
		{"closed", testClosed},
		{"blobs", testBlobs},
		{"blobs together", testBlobsTogether},
		{"blob collection", testBlobCollection},
		{"corrupt blob", testCorrupt},
		{"usage", testUsage},
		{"journal", testJournal},
		{"journal of commits", testJournalOfCommits},
		{"journal readers", testJournalReaders},
		{"prune versions", testPruneVersions},
		{"prune expired", testPruneExpired},
		{"prune records", testPruneRecords},
		{"prune bytes", testPruneBytes},
		{"prune nothing", testPruneNothing},
		{"prune late", testPruneLate},
		{"prune under load", testPruneUnderLoad},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(newHarness(t, open(t))) })
	}
}

// RunShared tests stores that share their data, as those of several processes
// do. Each call of open returns two on the same data, new and empty.
func RunShared(t *testing.T, open func(t *testing.T) (a, b store.Store)) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(a, b *harness)
	}{
		{"visible", sharedVisible},
		{"guards", sharedGuards},
		{"same id", sharedSameID},
		{"hot keys", sharedHotKeys},
		{"serialisable", sharedSerialisable},
		{"journal", sharedJournal},
		{"prune", sharedPrune},
		{"close", sharedClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			c.test(newHarness(t, a), newHarness(t, b))
		})
	}
}

// harness is a test and its store.
type harness struct {
	*testing.T
	store.Store
}

func newHarness(t *testing.T, s store.Store) *harness { return &harness{t, s} }

var ids atomic.Uint64

func newID() string { return fmt.Sprintf("commit-%d", ids.Add(1)) }

// space is where most tests write.
var space = store.Space{Principal: "alice", Package: "notes", Area: "kv"}

func key(name string) store.Key { return store.Key{Space: space, Name: name} }

func put(name, value string) store.Write { return store.Write{Key: key(name), Value: []byte(value)} }

func del(name string) store.Write { return store.Write{Key: key(name), Delete: true} }

func commitOf(writes ...store.Write) *store.Commit {
	return &store.Commit{ID: newID(), Time: time.Now(), Writes: writes}
}

// write commits writes without guards.
func (h *harness) write(writes ...store.Write) store.Version {
	h.Helper()
	return h.commit(commitOf(writes...))
}

func (h *harness) commit(c *store.Commit) store.Version {
	h.Helper()
	v, err := h.Commit(h.ctx(), c)
	if err != nil {
		h.Fatalf("commit: %v", err)
	}
	if v == 0 {
		h.Fatal("commit has version 0, which is that of absent keys")
	}
	return v
}

// conflicts demands that a commit does not hold.
func (h *harness) conflicts(c *store.Commit, why string) {
	h.Helper()
	if _, err := h.Commit(h.ctx(), c); !errors.Is(err, store.ErrConflict) {
		h.Errorf("%s: %v, want a conflict", why, err)
	}
}

func (h *harness) ctx() context.Context { return h.T.Context() }

func (h *harness) snapshot() store.Snapshot {
	h.Helper()
	s, err := h.Store.Snapshot(h.ctx())
	h.must(err)
	return s
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// now returns what the store has at a name now.
func (h *harness) now(name string) store.Entry {
	h.Helper()
	return h.at(h.snapshot(), name)
}

func (h *harness) at(s store.Snapshot, name string) store.Entry {
	h.Helper()
	es, err := s.Get(h.ctx(), key(name))
	h.must(err)
	if len(es) != 1 {
		h.Fatalf("get: %d entries for one key", len(es))
	}
	return es[0]
}

// has demands a value, or absence for the empty one.
func (h *harness) has(s store.Snapshot, name, value string) {
	h.Helper()
	e := h.at(s, name)
	if string(e.Value) != value || (e.Version != 0) != (value != "") {
		h.Errorf("%q: %q in version %d, want %q", name, e.Value, e.Version, value)
	}
}

func (h *harness) scan(s store.Snapshot, r store.Range, limit int) []store.Entry {
	h.Helper()
	es, err := s.Scan(h.ctx(), r, limit)
	h.must(err)
	return es
}

func all() store.Range { return store.Range{Space: space} }

// names are those of entries, with their values.
func pairs(es []store.Entry) string {
	out := ""
	for _, e := range es {
		out += fmt.Sprintf("%q=%s ", e.Name, e.Value)
	}
	return out
}
