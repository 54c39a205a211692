package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// testAtomic: what does not hold leaves nothing at all.
func testAtomic(h *harness) {
	v := h.write(put("k", "1"), put("gone", "1"))
	blob, err := h.PutBlob(h.ctx(), []byte("blob"))
	h.must(err)
	full := func() *store.Commit {
		c := commitOf(put("k", "2"), del("gone"), put("new", "2"), store.Write{Key: key("blob"), Blobs: []store.Digest{blob}})
		c.Records = []store.Record{{Time: c.Time, Data: []byte(`{"n":1}`)}, {Time: c.Time, Data: []byte(`{"n":2}`)}}
		return c
	}
	stale := full()
	stale.Guards = []store.Guard{{Key: key("k"), Version: v}, {Key: key("new"), Version: v}}
	h.conflicts(stale, "the last guard")
	ranged := full()
	ranged.Ranges = []store.RangeGuard{{Range: all(), Digest: store.DigestOf(nil, false)}}
	h.conflicts(ranged, "the range")
	missing := full()
	missing.Writes = append(missing.Writes, store.Write{Key: key("bad"), Blobs: []store.Digest{{1}}})
	if _, err := h.Commit(h.ctx(), missing); !errors.Is(err, store.ErrGone) {
		h.Errorf("a commit that names a blob nobody has: %v, want it gone", err)
	}
	if got := pairs(h.scan(h.snapshot(), all(), 9)); got != `"gone"=1 "k"=1 ` {
		h.Errorf("commits that were not done left %s", got)
	}
	h.records(0)
	u, err := h.Usage(h.ctx(), space)
	h.must(err)
	if want := (store.Usage{Keys: 2, Bytes: 7}); u != want {
		h.Errorf("usage %v, want %v", u, want)
	}
	// The same ID is free as long as nothing was done.
	stale.Guards = nil
	h.commit(stale)
	if got := pairs(h.scan(h.snapshot(), all(), 9)); got != `"blob"= "k"=2 "new"=2 ` {
		h.Errorf("the commit left %s", got)
	}
	h.records(2)
}

func testDuplicates(h *harness) {
	for _, c := range []*store.Commit{
		commitOf(put("k", "1"), put("other", "1"), put("k", "2")), commitOf(put("k", "1"), del("k")), commitOf(del("k"), del("k")),
	} {
		if _, err := h.Commit(h.ctx(), c); err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			h.Errorf("two writes of one key: %v, want it refused", err)
		}
	}
	if es := h.scan(h.snapshot(), all(), 9); len(es) != 0 {
		h.Errorf("refused commits left %s", pairs(es))
	}
	other := store.Space{Principal: "alice", Package: "notes", Area: "volume/data"}
	h.write(put("k", "1"), store.Write{Key: store.Key{Space: other, Name: "k"}})
}

func testSameID(h *harness) {
	c := commitOf(put("k", "1"))
	c.Guards = []store.Guard{{Key: key("k")}}
	c.Records = []store.Record{{Time: c.Time, Data: []byte(`{}`)}}
	v := h.commit(c)
	later := h.write(put("k", "2"))
	again := *c
	again.Guards = []store.Guard{{Key: key("k"), Version: later + 1}}
	again.Writes = []store.Write{put("k", "3"), put("more", "3")}
	for range 2 {
		if w := h.commit(&again); w != v {
			h.Errorf("a commit that was done answers %d, and %d then", w, v)
		}
	}
	h.has(h.snapshot(), "k", "2")
	h.has(h.snapshot(), "more", "")
	h.records(1)
}

// add adds one to a counter, once for an ID, as a call would.
func (h *harness) add(ctx context.Context, id, name string) error {
	for {
		s, err := h.Store.Snapshot(ctx)
		if err != nil {
			return err
		}
		es, err := s.Get(ctx, key(name))
		if err != nil {
			return err
		}
		var n uint64
		if es[0].Version != 0 {
			n = binary.BigEndian.Uint64(es[0].Value)
		}
		_, err = h.Commit(ctx, &store.Commit{
			ID: id, Time: time.Now(), Guards: []store.Guard{{Key: key(name), Version: es[0].Version}},
			Writes:  []store.Write{{Key: key(name), Value: binary.BigEndian.AppendUint64(nil, n+1)}},
			Records: []store.Record{{Time: time.Now(), Data: fmt.Appendf(nil, "%q", id)}},
		})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

const counters, adders, additions = 8, 16, 40

func testHotKeys(h *harness) { hotKeys(h, h) }

// hotKeys counts on a few keys from many sides, each commit from two sides.
func hotKeys(a, b *harness) {
	var wg sync.WaitGroup
	for g := range adders {
		wg.Go(func() {
			for i := range additions {
				var both sync.WaitGroup
				for _, h := range []*harness{a, b} {
					both.Go(func() {
						if err := h.add(h.ctx(), fmt.Sprintf("%d-%d", g, i), fmt.Sprintf("hot %d", (g+i)%counters)); err != nil {
							h.Error(err)
						}
					})
				}
				both.Wait()
			}
		})
	}
	wg.Wait()
	sum := uint64(0)
	for _, e := range a.scan(b.snapshot(), all(), 100) {
		sum += binary.BigEndian.Uint64(e.Value)
	}
	if sum != adders*additions {
		a.Errorf("counted %d of %d: lost or doubled", sum, adders*additions)
	}
	ids := map[string]int{}
	for _, r := range a.records(adders * additions) {
		if ids[string(r.Data)]++; ids[string(r.Data)] > 1 {
			a.Errorf("%s has two records", r.Data)
		}
	}
	a.verified()
}

func testExpiry(h *harness) {
	expiring := func(name string, in time.Duration) store.Write {
		w := put(name, "v")
		w.Expires = time.Now().Add(in)
		return w
	}
	v := h.write(expiring("past", -time.Second), expiring("later", time.Hour), put("never", "v"))
	s := h.snapshot()
	h.has(s, "past", "")
	h.has(s, "later", "v")
	if got := pairs(h.scan(s, all(), 2)); got != `"later"=v "never"=v ` {
		h.Errorf("scan shows %s", got)
	}
	seen := h.ranged(s, all(), false)
	h.commit(seen)
	c := commitOf(put("past", "again"))
	c.Guards = []store.Guard{{Key: key("past"), Version: v}}
	h.conflicts(c, "a version that has expired")
	c.Guards[0].Version = 0
	h.commit(c)
	h.has(s, "past", "")
	h.has(h.snapshot(), "past", "again")
	h.write(put("later", "v"), expiring("never", -time.Second))
	h.has(h.snapshot(), "never", "")

	// What expires does so for snapshots that come later.
	h.write(expiring("soon", 300*time.Millisecond))
	s = h.snapshot()
	h.has(s, "soon", "v")
	gone := h.eventually(func() bool { return h.now("soon").Version == 0 })
	if !gone {
		h.Error("a key does not expire")
	}
	h.has(s, "soon", "v")
	c = commitOf(put("soon", "again"))
	c.Guards = []store.Guard{{Key: key("soon"), Version: 0}}
	h.commit(c)
}

// eventually asks until the answer is yes, for a good while.
func (h *harness) eventually(yes func() bool) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if yes() {
			return true
		}
	}
	return false
}

func testCancelled(h *harness) {
	h.write(put("k", "1"))
	blob, err := h.PutBlob(h.ctx(), []byte("blob"))
	h.must(err)
	s := h.snapshot()
	ctx, cancel := context.WithCancel(h.ctx())
	cancel()
	calls := h.calls(ctx, s, blob)
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			h.Errorf("%s of a call that was cancelled: %v", name, err)
		}
	}
	h.records(0)
	if got := pairs(h.scan(s, all(), 9)); got != `"k"=1 ` {
		h.Errorf("cancelled calls left %s", got)
	}
	// Whatever a cancelled commit answers has to be so.
	for i := range 200 {
		ctx, cancel := context.WithCancel(h.ctx())
		c := commitOf(put(fmt.Sprint("race ", i), "v"))
		done := make(chan error)
		go func() {
			_, err := h.Commit(ctx, c)
			done <- err
		}()
		for range i * 10 {
			_ = ctx.Err()
		}
		cancel()
		err := <-done
		there := h.now(fmt.Sprint("race ", i)).Version != 0
		switch {
		case err == nil && !there:
			h.Fatal("a commit was answered and is not there")
		case errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnknown) && there:
			h.Fatal("a commit was cancelled and is there")
		case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnknown):
			h.Fatal(err)
		}
	}
}

// calls are all that a store does.
func (h *harness) calls(ctx context.Context, s store.Snapshot, blob store.Digest) map[string]func() error {
	return map[string]func() error{
		"snapshot": func() error { _, err := h.Store.Snapshot(ctx); return err },
		"get":      func() error { _, err := s.Get(ctx, key("k")); return err },
		"scan":     func() error { _, err := s.Scan(ctx, all(), 9); return err },
		"commit":   func() error { _, err := h.Commit(ctx, commitOf(put("cancelled", "1"))); return err },
		"usage":    func() error { _, err := h.Usage(ctx, space); return err },
		"spaces":   func() error { _, err := h.Spaces(ctx); return err },
		"put blob": func() error { _, err := h.PutBlob(ctx, []byte("other blob")); return err },
		"blob":     func() error { _, err := h.Blob(ctx, blob); return err },
		"append":   func() error { return h.Append(ctx, store.Record{Time: time.Now(), Data: []byte("{}")}) },
		"records":  func() error { _, err := h.Records(ctx, "", 9); return err },
		"heads":    func() error { _, err := h.Heads(ctx); return err },
		"prune":    func() error { return h.Prune(ctx, store.Prune{Now: time.Now()}) },
	}
}

func testClosed(h *harness) {
	h.write(put("k", "1"))
	blob, err := h.PutBlob(h.ctx(), []byte("blob"))
	h.must(err)
	s := h.snapshot()
	// Commits that are under way while the store is closed are done or are not.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, err := h.Commit(h.ctx(), commitOf(put(newID(), "v")))
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					h.Error(err)
					return
				}
			}
		})
	}
	for range 5 {
		h.write(put("k", "2"))
	}
	h.must(h.Close())
	wg.Wait()
	for name, call := range h.calls(h.ctx(), s, blob) {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			h.Errorf("%s of a closed store: %v", name, err)
		}
	}
	h.must(h.Close())
}
