package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// seen is what a transaction read at a name.
type seen struct {
	name    string
	version store.Version
}

// done is a transaction that was committed. All keys of a universe that lie in
// a range it scanned are among its reads, also absent ones.
type done struct {
	began, ended int // places in the order of all beginnings and ends
	reads        []seen
	writes       []string
	deletes      map[string]bool
	version      store.Version
}

const universe = 7

func nameOf(i int) string { return fmt.Sprintf("s%d", i) }

func testSerialisable(h *harness) { serialisable(h, h) }

// serialisable runs random transactions side by side and looks for an order in
// which, one after another, they would have read what they did.
func serialisable(a, b *harness) {
	const clients, each, rounds = 6, 12, 4
	for round := range rounds {
		var (
			mu      sync.Mutex
			clock   int
			history []done
			wg      sync.WaitGroup
		)
		tick := func() int {
			mu.Lock()
			defer mu.Unlock()
			clock++
			return clock
		}
		initial := map[string]store.Version{}
		for i := range universe {
			initial[nameOf(i)] = a.now(nameOf(i)).Version
		}
		for c := range clients {
			wg.Go(func() {
				h := []*harness{a, b}[c%2]
				r := rand.New(rand.NewPCG(uint64(round), uint64(c)))
				for range each {
					d, err := h.transaction(h.ctx(), r, tick)
					if err != nil && !errors.Is(err, store.ErrConflict) {
						h.Error(err)
						return
					}
					if err == nil {
						mu.Lock()
						history = append(history, d)
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if len(history) < each {
			a.Errorf("of %d transactions %d were committed", clients*each, len(history))
		}
		final := map[string]store.Version{}
		for i := range universe {
			final[nameOf(i)] = b.now(nameOf(i)).Version
		}
		if !explained(initial, final, history) {
			a.Errorf("round %d: no order of these explains what they read:\n%+v", round, history)
		}
	}
}

// transaction reads some keys and perhaps a range, guards what it read, and
// writes some of it.
func (h *harness) transaction(ctx context.Context, r *rand.Rand, tick func() int) (done, error) {
	d := done{began: tick(), deletes: map[string]bool{}}
	s, err := h.Store.Snapshot(ctx)
	if err != nil {
		return d, err
	}
	c := commitOf()
	var keys []store.Key
	for _, i := range r.Perm(universe)[:1+r.IntN(3)] {
		keys = append(keys, key(nameOf(i)))
	}
	es, err := s.Get(ctx, keys...)
	if err != nil {
		return d, err
	}
	for _, e := range es {
		d.reads = append(d.reads, seen{e.Name, e.Version})
		c.Guards = append(c.Guards, store.Guard{Key: e.Key, Version: e.Version})
	}
	if r.IntN(2) == 0 {
		from := r.IntN(universe)
		to := from + 1 + r.IntN(universe-from)
		rg := store.Range{Space: space, From: nameOf(from), To: nameOf(to)}
		es, err := s.Scan(ctx, rg, 100)
		if err != nil {
			return d, err
		}
		c.Ranges = append(c.Ranges, store.RangeGuard{Range: rg, Digest: store.DigestOf(es, false)})
		for i := from; i < to; i++ {
			at := slices.IndexFunc(es, func(e store.Entry) bool { return e.Name == nameOf(i) })
			var v store.Version
			if at >= 0 {
				v = es[at].Version
			}
			d.reads = append(d.reads, seen{nameOf(i), v})
		}
	}
	for _, e := range es[:1+r.IntN(len(es))] {
		w := store.Write{Key: e.Key, Value: []byte(c.ID), Delete: r.IntN(4) == 0}
		d.deletes[e.Name] = w.Delete
		d.writes = append(d.writes, e.Name)
		c.Writes = append(c.Writes, w)
	}
	if r.IntN(2) == 0 { // one that is written without having been read
		name := nameOf(r.IntN(universe))
		if !slices.Contains(d.writes, name) {
			d.writes = append(d.writes, name)
			c.Writes = append(c.Writes, put(name, c.ID))
		}
	}
	d.version, err = h.Commit(ctx, c)
	d.ended = tick()
	return d, err
}

// explained searches an order of the history in which each reads what it read,
// from the first state to the last. One that had ended before another began
// comes before it.
func explained(state, final map[string]store.Version, history []done) bool {
	slices.SortFunc(history, func(a, b done) int { return a.ended - b.ended })
	tried := map[string]bool{}
	used := make([]bool, len(history))
	var search func(state map[string]store.Version, left int) bool
	search = func(state map[string]store.Version, left int) bool {
		if left == 0 {
			return fmt.Sprint(state) == fmt.Sprint(final)
		}
		place := fmt.Sprint(used, state)
		if tried[place] {
			return false
		}
		tried[place] = true
		first := 0 // the end of the first one that has not been placed
		for i, d := range history {
			if used[i] {
				continue
			}
			if first == 0 {
				first = d.ended
			}
			if d.began > first || slices.ContainsFunc(d.reads, func(s seen) bool { return state[s.name] != s.version }) {
				continue
			}
			next := map[string]store.Version{}
			for k, v := range state {
				next[k] = v
			}
			for _, name := range d.writes {
				next[name] = d.version
				if d.deletes[name] {
					next[name] = 0
				}
			}
			used[i] = true
			if search(next, left-1) {
				return true
			}
			used[i] = false
		}
		return false
	}
	return search(state, len(history))
}

func sharedSerialisable(a, b *harness) { serialisable(a, b) }

func sharedHotKeys(a, b *harness) { hotKeys(a, b) }

func sharedVisible(a, b *harness) {
	before := b.snapshot()
	for i := range 50 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		v := from.write(put("k", fmt.Sprint(i)), put(fmt.Sprint("n", i), "v"))
		if e := to.now("k"); string(e.Value) != fmt.Sprint(i) || e.Version != v {
			to.Fatalf("a commit that was answered is not seen by the other: %q in version %d", e.Value, e.Version)
		}
		if es := to.scan(to.snapshot(), store.Prefix(space, "n"), 100); len(es) != i+1 {
			to.Fatalf("after %d commits the other sees %d", i+1, len(es))
		}
	}
	b.has(before, "k", "")
	d, err := a.PutBlob(a.ctx(), []byte("shared"))
	a.must(err)
	data, err := b.Blob(b.ctx(), d)
	b.must(err)
	if string(data) != "shared" {
		b.Errorf("the blob of the other is %q", data)
	}
	b.write(store.Write{Key: key("blob"), Blobs: []store.Digest{d}})
	ua, err := a.Usage(a.ctx(), space)
	a.must(err)
	ub, err := b.Usage(b.ctx(), space)
	b.must(err)
	if ua != ub || ua.Keys != 52 {
		a.Errorf("usage %v and %v", ua, ub)
	}
}

func sharedGuards(a, b *harness) {
	v := a.write(put("k", "1"))
	ga, gb := commitOf(put("k", "a")), commitOf(put("k", "b"))
	ga.Guards = []store.Guard{{Key: key("k"), Version: v}}
	gb.Guards = ga.Guards
	a.commit(ga)
	b.conflicts(gb, "a version that the other replaced")
	g := b.ranged(b.snapshot(), all(), true)
	a.write(put("phantom", "1"))
	b.conflicts(g, "a phantom of the other")
}

func sharedSameID(a, b *harness) {
	c := commitOf(put("k", "1"))
	v := a.commit(c)
	a.write(put("k", "2"))
	if w := b.commit(c); w != v {
		b.Errorf("a commit that the other did answers %d, and %d there", w, v)
	}
	b.has(b.snapshot(), "k", "2")
}

func sharedPrune(a, b *harness) {
	a.write(put("k", "1"))
	old := b.snapshot()
	a.write(put("k", "2"))
	a.must(a.Prune(a.ctx(), store.Prune{Now: time.Now()}))
	b.has(old, "k", "1")
	a.must(a.Prune(a.ctx(), later(2*time.Hour)))
	b.neverWrong(old, "k", "1")
	b.has(b.snapshot(), "k", "2")
}

func sharedClose(a, b *harness) {
	a.write(put("k", "1"))
	a.must(a.Close())
	b.has(b.snapshot(), "k", "1")
	b.write(put("k", "2"))
	b.must(b.Append(b.ctx(), store.Record{Time: time.Now(), Data: []byte("{}")}))
	b.has(b.snapshot(), "k", "2")
	if _, err := a.Commit(a.ctx(), commitOf(put("k", "3"))); !errors.Is(err, store.ErrClosed) {
		a.Errorf("commit of a closed store: %v", err)
	}
}

// sharedJournal: each handle has chains of its own.
func sharedJournal(a, b *harness) {
	for i := range 10 {
		for _, h := range []*harness{a, b} {
			h.must(h.Append(h.ctx(), store.Record{Time: time.Now(), Data: fmt.Appendf(nil, `{"i":%d}`, i)}))
		}
	}
	writers := map[string]bool{}
	for _, l := range a.records(20) {
		writers[l.Writer] = true
	}
	if len(writers) < 2 {
		a.Errorf("two handles wrote to %d chains", len(writers))
	}
	b.verified()
	journalReaders(a, b)
}
