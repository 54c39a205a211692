package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/postgres"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/pgtest"
)

var postgresBin = flag.String("postgres", "", "folder of the programs initdb and postgres; without it commits are measured on SQLite alone")

// What is committed: two keys with 200 bytes each, of many that are there.
const (
	manyKeys  = 3200
	mostCalls = 16 // callers that have keys of their own, so that conflicts are not measured
	valueSize = 200
)

var keySpace = store.Space{Principal: "local", Package: "keeper", Area: kv.Area}

func keyName(i int) string { return fmt.Sprintf("key %05d", i) }

func keyAt(i int) store.Key { return store.Key{Space: keySpace, Name: keyName(i)} }

// value returns one that no call has written yet.
func value(n int64) []byte { return fmt.Appendf(nil, "%0*d", valueSize, n) }

// pair is the keys of a call.
func pair(caller int, n int64) [2]int {
	const per = manyKeys / mostCalls
	at := int(n % (per / 2))
	return [2]int{caller*per + 2*at, caller*per + 2*at + 1}
}

// way is one way to make the same commits. run makes one, and says how long the
// commit itself took.
type way struct {
	name string
	run  func(ctx context.Context, caller int, n int64) (time.Duration, error)
}

// content is what the ways of one table commit; the first one is what the others
// are compared with.
type content struct {
	name string
	ways []way
}

// fill makes the keys.
func fill(tb testing.TB, s store.Store) {
	tb.Helper()
	for at := 0; at < manyKeys; at += 400 {
		c := &store.Commit{ID: fmt.Sprint("fill ", at), Time: time.Now()}
		for i := at; i < at+400; i++ {
			c.Writes = append(c.Writes, store.Write{Key: keyAt(i), Value: value(0)})
		}
		if _, err := s.Commit(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
	}
}

// byStore commits what somebody has prepared who knows the versions.
func byStore(tb testing.TB, s store.Store) way {
	tb.Helper()
	snap, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	versions := make([]store.Version, manyKeys)
	for i := range versions {
		e, err := snap.Get(tb.Context(), keyAt(i))
		if err != nil {
			tb.Fatal(err)
		}
		versions[i] = e[0].Version
	}
	return way{"the store's Commit", func(ctx context.Context, caller int, n int64) (time.Duration, error) {
		c := &store.Commit{ID: fmt.Sprint("store ", n), Time: time.Now()}
		keys := pair(caller, n)
		for _, i := range keys {
			c.Guards = append(c.Guards, store.Guard{Key: keyAt(i), Version: versions[i]})
			c.Writes = append(c.Writes, store.Write{Key: keyAt(i), Value: value(n)})
		}
		began := time.Now()
		v, err := s.Commit(ctx, c)
		took := time.Since(began)
		versions[keys[0]], versions[keys[1]] = v, v
		return took, err
	}}
}

// byTx writes the keys through a call's overlay and commits its transaction.
func byTx(s store.Store) way {
	return way{"Prepare and Commit of a call", func(ctx context.Context, caller int, n int64) (time.Duration, error) {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return 0, err
		}
		o := kv.NewOverlay(kv.Stored(snap, keySpace), kv.Options{
			Space: keySpace, Budget: &kv.Budget{Bytes: 1 << 20, Keys: 10}, Quota: store.Usage{Keys: 2 * manyKeys, Bytes: 1 << 30},
		})
		for _, i := range pair(caller, n) {
			if err := o.Put(ctx, keyName(i), value(n)); err != nil {
				return 0, err
			}
		}
		x := tx.Begin(tx.Parts{Others: []tx.Participant{tx.Keys(o)}, Store: s}, volume.Options{})
		began := time.Now()
		p, err := x.Prepare(ctx)
		if err == nil {
			err = x.Commit(ctx, p, store.Commit{ID: fmt.Sprint("tx ", n), Time: began})
		}
		return time.Since(began), err
	}}
}

// TestCommits prints what a commit of two keys costs beside the same transaction
// by hand, on each database: the ways take turns.
func TestCommits(t *testing.T) {
	for _, n := range numbers(t, *callers) {
		if n > mostCalls {
			t.Fatalf("%d callers: want at most %d", n, mostCalls)
		}
		reportWays(t, "SQLite", n, onSQLite(t, n))
		if *postgresBin != "" {
			reportWays(t, "PostgreSQL", n, onPostgres(t, n))
		}
	}
}

func onSQLite(t *testing.T, callers int) []content {
	open := func(folder string) store.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	filled := func() store.Store {
		s := open(t.TempDir())
		fill(t, s)
		return s
	}
	byHand := func(more *more) *sqliteDirect {
		folder := t.TempDir()
		s := open(folder)
		fill(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return newSQLiteDirect(t, folder, more)
	}
	engine := newKeeper(t, filled(), writing)
	more := engine.more(t)
	two := content{"two keys", []way{byHand(nil).way()}}
	call := content{"two keys, undo record, idempotency key and record", []way{byHand(more).way()}}
	if callers > 1 {
		two.ways = append(two.ways, byHand(nil).grouped())
		call.ways = append(call.ways, byHand(more).grouped())
	}
	two.ways = append(two.ways, byStore(t, filled()), byTx(filled()))
	call.ways = append(call.ways, engine.way())
	return []content{two, call}
}

func onPostgres(t *testing.T, callers int) []content {
	server := pgtest.Start(t, *postgresBin)
	schemas := 0
	filled := func() (store.Store, string) {
		schemas++
		url := fmt.Sprintf("%s&search_path=s%d", server.URL(), schemas)
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		fill(t, s)
		return s, url
	}
	byHand := func(whole bool, more *more) way {
		_, url := filled()
		return newPostgresDirect(t, url, callers, whole, more)
	}
	ready := func() store.Store { s, _ := filled(); return s }
	engine := newKeeper(t, ready(), writing)
	more := engine.more(t)
	return []content{
		{"two keys", []way{byHand(true, nil), byHand(false, nil), byStore(t, ready()), byTx(ready())}},
		{"two keys, undo record, idempotency key and record", []way{byHand(true, more), byHand(false, more), engine.way()}},
	}
}

// round is what a way came to in one round.
type round struct {
	took  []time.Duration
	whole time.Duration
	cpu   time.Duration // of the process, with what was not timed
}

func (r *round) median() time.Duration { return middle(r.took) }

func middle[T time.Duration | float64](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

func (w *way) round(t *testing.T, callers int, count *atomic.Int64) *round {
	r := &round{}
	goruntime.GC()
	began, cpu := time.Now(), processTime()
	until := began.Add(*each)
	var mu sync.Mutex
	var work sync.WaitGroup
	var fault error
	for caller := range callers {
		work.Go(func() {
			var took []time.Duration
			var err error
			for err == nil && (len(took) == 0 || time.Now().Before(until)) {
				var d time.Duration
				d, err = w.run(t.Context(), caller, count.Add(1))
				took = append(took, d)
			}
			mu.Lock()
			defer mu.Unlock()
			r.took, fault = append(r.took, took...), errors.Join(fault, err)
		})
	}
	work.Wait()
	r.whole, r.cpu = time.Since(began), processTime()-cpu
	if fault != nil {
		t.Fatalf("%s: %v", w.name, fault)
	}
	return r
}

func reportWays(t *testing.T, database string, callers int, contents []content) {
	fmt.Fprintf(os.Stdout, "\n%s, %d callers, %d rounds of %v, %s, GOMAXPROCS %d\n", database, callers, *rounds, *each, goruntime.Version(), goruntime.GOMAXPROCS(0))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tway\ttimes\tp50 µs\tp50 to first\teach second\tto first\tCPU µs\t")
	var count atomic.Int64
	for _, c := range contents {
		all := make([][]*round, len(c.ways))
		for n := range *rounds {
			for i := range c.ways {
				at := (i + n) % len(c.ways)
				all[at] = append(all[at], c.ways[at].round(t, callers, &count))
			}
		}
		for i, way := range c.ways {
			var p50, ratio, rate, rates, cpu []float64
			commits := 0
			for n, r := range all[i] {
				first := all[0][n]
				p50 = append(p50, float64(r.median().Nanoseconds())/1000)
				ratio = append(ratio, float64(r.median())/float64(first.median()))
				perSecond := func(r *round) float64 { return float64(len(r.took)) / r.whole.Seconds() }
				rate = append(rate, perSecond(r))
				rates = append(rates, perSecond(r)/perSecond(first))
				cpu = append(cpu, float64(r.cpu.Nanoseconds())/1000/float64(len(r.took)))
				commits += len(r.took)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t\n",
				c.name, way.name, commits, middle(p50), middle(ratio), middle(rate), middle(rates), middle(cpu))
		}
	}
	w.Flush()
}
