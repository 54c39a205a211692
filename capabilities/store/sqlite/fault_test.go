package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func openedOn(t testing.TB, d *device) *Store {
	t.Helper()
	s, err := open(t.Context(), Options{Folder: t.TempDir()}, d.name, osDisk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the device may be dead
	return s
}

var faultSpace = store.Space{Principal: "alice", Package: "notes", Area: "kv"}

// mark is a commit that can be told from others by all that it leaves: a key of
// its own, one that all share, and a record.
func mark(id string) *store.Commit {
	return &store.Commit{
		ID: id, Time: time.Now(), Records: []store.Record{{Time: time.Now(), Data: []byte(id)}},
		Writes: []store.Write{
			{Key: store.Key{Space: faultSpace, Name: "own " + id}, Value: []byte(id)},
			{Key: store.Key{Space: faultSpace, Name: "shared"}, Value: []byte(id)},
		},
	}
}

// outcomes is what commits were told.
type outcomes struct {
	sync.Mutex
	done, failed, unknown []string
}

func (o *outcomes) add(id string, err error) {
	o.Lock()
	defer o.Unlock()
	switch {
	case err == nil:
		o.done = append(o.done, id)
	case errors.Is(err, store.ErrUnknown):
		o.unknown = append(o.unknown, id)
	default:
		o.failed = append(o.failed, id)
	}
}

// hold demands that a store has what was answered, nothing of what failed, and
// all or nothing of the rest.
func (o *outcomes) hold(t testing.TB, s *Store) {
	t.Helper()
	o.held(t, s, counted)
}

// held lets count compare the usage; blobs count too, where there are some.
func (o *outcomes) held(t testing.TB, s *Store, count func(testing.TB, *Store, store.Snapshot)) {
	t.Helper()
	soundFile(t, s)
	records := map[string]int{}
	for _, l := range verified(t, s) {
		records[string(l.Data)]++
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	there := func(id string) bool {
		es, err := snap.Get(t.Context(), store.Key{Space: faultSpace, Name: "own " + id})
		if err != nil {
			t.Fatal(err)
		}
		has := string(es[0].Value) == id
		if has != (records[id] == 1) || records[id] > 1 {
			t.Errorf("commit %s: key there %v, records %d", id, has, records[id])
		}
		return has
	}
	for _, id := range o.done {
		if !there(id) {
			t.Errorf("commit %s was answered and is lost", id)
		}
	}
	for _, id := range o.failed {
		if there(id) {
			t.Errorf("commit %s failed and is there", id)
		}
	}
	for _, id := range o.unknown {
		there(id)
	}
	if count != nil {
		count(t, s, snap)
	}
}

// counted compares the usage with what is there.
func counted(t testing.TB, s *Store, snap store.Snapshot) {
	t.Helper()
	es, err := snap.Scan(t.Context(), store.Range{Space: faultSpace}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var want store.Usage
	for _, e := range es {
		want.Keys++
		want.Bytes += int64(len(e.Name) + len(e.Value))
	}
	if got, err := s.Usage(t.Context(), faultSpace); err != nil || got != want {
		t.Errorf("usage %v, %v; want %v", got, err, want)
	}
}

// verified returns the journal, once its chains have been checked.
func verified(t testing.TB, s *Store) []store.Logged {
	t.Helper()
	type end struct {
		n    uint64
		hash store.Digest
	}
	at, want := map[string]end{}, map[string]end{}
	heads, err := s.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		at[h.Writer], want[h.Writer] = end{h.First - 1, h.Prev}, end{h.N, h.Hash}
	}
	all, err := s.Records(t.Context(), "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		a := at[l.Writer]
		if l.N != a.n+1 || l.Prev != a.hash || l.Hash != store.ChainHash(a.hash, l.Writer, l.N, l.Record) {
			t.Fatalf("record %d of %s does not follow %d", l.N, l.Writer, a.n)
		}
		at[l.Writer] = end{l.N, l.Hash}
	}
	for w, e := range want {
		if at[w] != e {
			t.Errorf("chain of %s ends at %d, and should at %d", w, at[w].n, e.n)
		}
	}
	return all
}

// afterwards opens what the power left of a device, and checks it.
func (o *outcomes) afterwards(t *testing.T, d *device, keep func() bool) {
	t.Helper()
	folder := t.TempDir()
	d.lose(t, folder, keep)
	s, err := Open(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	o.hold(t, s)
	if _, err := s.Commit(t.Context(), mark("afterwards")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFault fails one operation, or some in a row, at each place that a commit
// has: what was answered is there, what failed is not, also when the power goes
// away right then, and the store works on.
func TestFault(t *testing.T) {
	faults := map[string]func(op, k int, what string) error{
		"full": func(op, k int, what string) error {
			if op >= k && op < k+8 && what == "write" {
				return syscall.ENOSPC
			}
			return nil
		},
		"engine full": func(op, k int, what string) error {
			if op == k && what == "write" {
				return sqlite3.FULL
			}
			return nil
		},
		"write": func(op, k int, what string) error {
			if op == k && what == "write" {
				return syscall.EIO
			}
			return nil
		},
		"any": func(op, k int, _ string) error {
			if op == k {
				return syscall.EIO
			}
			return nil
		},
		"sync": func(op, k int, what string) error {
			if op >= k && what == "sync" {
				return syscall.EIO
			}
			return nil
		},
		"next sync": func() func(op, k int, what string) error {
			failed := 0
			return func(op, k int, what string) error {
				if op >= k && what == "sync" && failed != k {
					failed = k
					return syscall.EIO
				}
				return nil
			}
		}(),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			s := openedOn(t, d)
			var o outcomes
			r := rand.New(rand.NewPCG(1, 1))
			failures := 0
			for k := 1; k <= 24; k++ {
				d.failing(func(op int, what, _ string) error { return fault(op, k, what) })
				o.together(t.Context(), s, fmt.Sprint(k, " faulty "), 1+k%3)
				if failed := len(o.failed) + len(o.unknown); failed > failures {
					failures = failed
					for _, keep := range keepers(r) {
						o.afterwards(t, d, keep)
					}
				}
				d.failing(nil)
				o.together(t.Context(), s, fmt.Sprint(k, " sound "), 2)
				o.hold(t, s)
			}
			for _, keep := range keepers(r) {
				o.afterwards(t, d, keep)
			}
			if failures == 0 || len(o.done) < 48 {
				t.Errorf("%d commits failed, %d were done: the faults miss", failures, len(o.done))
			}
			if len(o.unknown) > 0 && name != "sync" && name != "any" {
				t.Errorf("outcome unknown of %v", o.unknown)
			}
		})
	}
}

// together does some commits side by side.
func (o *outcomes) together(ctx context.Context, s *Store, prefix string, n int) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			id := fmt.Sprint(prefix, i)
			_, err := s.Commit(ctx, mark(id))
			o.add(id, err)
		})
	}
	wg.Wait()
}

// TestPowerLoss lets the power go away at any operation.
func TestPowerLoss(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	answered := 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(2, uint64(round)))
		d := newDevice(t)
		s := openedOn(t, d)
		cut := 1 + r.IntN(400)
		d.failing(func(op int, _, _ string) error {
			if op >= cut {
				return syscall.EIO // nothing works any more
			}
			return nil
		})
		var o outcomes
		for i := 0; len(o.failed)+len(o.unknown) == 0; i++ {
			o.together(t.Context(), s, fmt.Sprint(i, " "), 1+r.IntN(4))
			if i%10 == 5 {
				_ = s.Prune(t.Context(), store.Prune{Now: time.Now().Add(2 * time.Hour)})
			}
			if i%7 == 3 { // a checkpoint more often than the engine has one
				_ = s.queue.do(t.Context(), func(g *group) error { return refuse(g.c.WALAutoCheckpoint(10)) })
			}
		}
		answered += len(o.done)
		// All failures after the power went away are told nobody: any outcome is right.
		o.unknown, o.failed = append(o.unknown, o.failed...), nil
		for _, keep := range keepers(r) {
			o.afterwards(t, d, keep)
		}
	}
	if answered < rounds {
		t.Errorf("%d commits were answered in %d rounds", answered, rounds)
	}
}

// TestCountingUnderFaults counts while the disk fails now and then: whoever tries
// again with the same ID has counted once.
func TestCountingUnderFaults(t *testing.T) {
	d := newDevice(t)
	s := openedOn(t, d)
	r := rand.New(rand.NewPCG(3, 3))
	d.failing(func(_ int, what, _ string) error { // under the device's lock
		switch {
		case what == "sync" && r.IntN(6) == 0:
			return syscall.EIO
		case what == "write" && r.IntN(40) == 0:
			return syscall.ENOSPC
		}
		return nil
	})
	var wg sync.WaitGroup
	var failures atomic.Int64
	const clients, each, keys = 6, 20, 3
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				k := store.Key{Space: faultSpace, Name: fmt.Sprint((c + i) % keys)}
				for {
					err := increment(t.Context(), s, fmt.Sprint(c, " ", i), k)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) {
						failures.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	d.failing(nil)
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	es, err := snap.Scan(t.Context(), store.Range{Space: faultSpace}, 100)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, e := range es {
		sum += len(e.Value)
	}
	if records := verified(t, s); sum != clients*each || len(records) != sum {
		t.Errorf("counted %d with %d records, want %d", sum, len(records), clients*each)
	}
	if failures.Load() == 0 {
		t.Error("the disk never failed")
	}
	soundFile(t, s)
}

// increment makes the value of a key one byte longer.
func increment(ctx context.Context, s *Store, id string, k store.Key) error {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	es, err := snap.Get(ctx, k)
	if err != nil {
		return err
	}
	_, err = s.Commit(ctx, &store.Commit{
		ID: id, Time: time.Now(), Guards: []store.Guard{{Key: k, Version: es[0].Version}},
		Writes: []store.Write{{Key: k, Value: append(es[0].Value, 'x')}}, Records: []store.Record{{Time: time.Now(), Data: []byte(id)}},
	})
	return err
}
