package courier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// A message is delivered once it was committed, and never again; its key is known
// for a time and its body is not kept.
func TestDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, l := memstore.New(), &sink{}, &told{}
		o := l.options(s, map[string]Sink{"h": h})
		o.Poll = time.Hour
		c := New(o)
		stop := run(t, c)
		synctest.Wait()
		post(t, s, "h", "a", "b")
		c.Wake()
		synctest.Wait()
		if got := h.keys(); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("got %q", got)
		}
		time.Sleep(7*24*time.Hour - time.Minute)
		list, err := outbox.List(t.Context(), s, 9)
		must(t, err)
		if len(list) != 2 || list[0].State != outbox.StateDelivered || list[0].Message.Body != nil || list[0].Bytes != 4 || list[0].Lease != nil || list[0].Attempts != 1 {
			t.Errorf("kept %+v", list)
		}
		time.Sleep(2 * time.Minute)
		list, err = outbox.List(t.Context(), s, 9)
		must(t, err)
		if len(list) != 0 || len(h.keys()) != 2 {
			t.Errorf("kept %+v, delivered %q", list, h.keys())
		}
		stop()
		if k := l.kinds(); !slices.Equal(k, []Kind{Delivered, Delivered}) || !slices.Equal(journal(t, s), k) || len(l.faults) != 0 {
			t.Errorf("told %v, %v, recorded %v", k, l.faults, journal(t, s))
		}
	})
}

// Without a wake the store is looked at from time to time: another process may
// have committed.
func TestPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := memstore.New(), &sink{}
		defer run(t, New(Options{Store: s, Sink: byHost(map[string]Sink{"h": h})}))()
		synctest.Wait()
		post(t, s, "h", "a")
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if len(h.keys()) != 1 {
			t.Error("not delivered")
		}
	})
}

// Attempts come at growing distances, up to a bound, until one succeeds.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		h := &sink{answer: func(_ context.Context, _ outbox.Message, n int) error {
			if n < 16 {
				return errors.New("down\nX: y\xff")
			}
			return nil
		}}
		post(t, s, "h", "a")
		stop := run(t, New(l.options(s, map[string]Sink{"h": h})))
		time.Sleep(500 * time.Millisecond)
		if r := only(t, s); r.State != outbox.StatePending || r.LastError != "down X: y\uFFFD" || r.Attempts != 1 || r.Next.IsZero() || r.Lease != nil {
			t.Errorf("after one: %+v", r)
		}
		time.Sleep(24 * time.Hour)
		stop()
		for i := range 15 {
			most := min(time.Second<<i, time.Hour)
			if d := h.at[i+1].Sub(h.at[i]); d < most/2 || d > most+time.Second {
				t.Errorf("pause %d: %v, want half of %v to all of it", i, d, most)
			}
		}
		if r := only(t, s); len(h.got) != 16 || r.State != outbox.StateDelivered || r.Attempts != 16 || r.LastError != "" {
			t.Errorf("%d attempts, %+v", len(h.got), r)
		}
		if k := journal(t, s); len(k) != 16 || k[0] != Failed || k[15] != Delivered {
			t.Errorf("recorded %v", k)
		}
	})
}

// What is given up stays given up, with its body, and is known for a time.
func TestGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		o        Options
		err      error
		attempts func(int) bool
	}{
		"permanent": {Options{}, fmt.Errorf("answer: %w", &Permanent{errDown}), func(n int) bool { return n == 1 }},
		"tries":     {Options{Tries: 3}, errDown, func(n int) bool { return n == 3 }},
		"age":       {Options{}, errDown, func(n int) bool { return n > 80 && n < 100 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := memstore.New(), &told{}
				h := &sink{answer: func(context.Context, outbox.Message, int) error { return c.err }}
				o := l.options(s, map[string]Sink{"h": h})
				o.Tries, o.Keep, o.Poll = c.o.Tries, 30*24*time.Hour, time.Hour
				if name == "age" {
					o.Tries = 1000
				}
				post(t, s, "h", "a")
				stop := run(t, New(o))
				time.Sleep(10 * 24 * time.Hour)
				stop()
				k := l.kinds()
				if r := only(t, s); r.State != outbox.StateGivenUp || string(r.Message.Body) != "body" || r.LastError != c.err.Error() ||
					!c.attempts(r.Attempts) && name != "age" || r.Attempts != len(h.got) {
					t.Errorf("%+v", r)
				}
				if k[len(k)-1] != GivenUp || slices.Contains(k[:len(k)-1], GivenUp) || len(k) != len(h.got) {
					t.Errorf("told %v", k)
				}
			})
		})
	}
}

// A process dies between a delivery and its record: the message is delivered
// again once the lease is over, with the same key, and by nobody before.
func TestDeathAfterDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, l := memstore.New(), &sink{}, &told{}
		post(t, s, "h", "a")
		dying := &faulty{Store: s, before: func(n int, _ *store.Commit) error {
			if n > 1 { // the claim is the first
				return errDown
			}
			return nil
		}}
		stop := run(t, New(Options{Store: dying, Sink: byHost(map[string]Sink{"h": h})}))
		synctest.Wait()
		stop()
		if r := only(t, s); len(h.got) != 1 || r.State != outbox.StatePending || r.Lease == nil || r.Attempts != 1 {
			t.Fatalf("%d delivered, %+v", len(h.got), r)
		}
		stop = run(t, New(l.options(s, map[string]Sink{"h": h})))
		time.Sleep(time.Hour)
		stop()
		if !slices.Equal(h.got, []string{"a", "a"}) || h.at[1].Sub(h.at[0]) < 2*time.Minute || h.at[1].Sub(h.at[0]) > 2*time.Minute+5*time.Second {
			t.Errorf("delivered %q at %v", h.got, h.at)
		}
		if r := only(t, s); r.State != outbox.StateDelivered || r.Attempts != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// A message that ends every process that delivers it is given up without another
// attempt.
func TestDeadlyMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, l := memstore.New(), &sink{}, &told{}
		post(t, s, "h", "a")
		for range 3 {
			n := 0
			dying := &faulty{Store: s, before: func(int, *store.Commit) error {
				if n++; n > 1 {
					return errDown
				}
				return nil
			}}
			stop := run(t, New(Options{Store: dying, Sink: byHost(map[string]Sink{"h": h}), Tries: 3}))
			synctest.Wait()
			stop()
			time.Sleep(3 * time.Minute)
		}
		o := l.options(s, map[string]Sink{"h": h})
		o.Tries = 3
		must(t, New(o).Drain(t.Context()))
		if r := only(t, s); len(h.got) != 3 || r.State != outbox.StateGivenUp || r.LastError != errUnanswered.Error() {
			t.Errorf("%d delivered, %+v", len(h.got), r)
		}
		if k := l.kinds(); !slices.Equal(k, []Kind{GivenUp}) {
			t.Errorf("told %v", k)
		}
	})
}

// Several processes on one store deliver each message once, and never one at the
// same time.
func TestSeveralCouriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		h := &sink{answer: func(ctx context.Context, m outbox.Message, _ int) error {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return nil
		}}
		want, stops := []string{}, []func(){}
		for i := range 50 {
			want = append(want, fmt.Sprintf("k%02d", i))
		}
		post(t, s, "h", want...)
		for range 4 {
			stops = append(stops, run(t, New(Options{Store: s, Sink: byHost(map[string]Sink{"h": h})})))
		}
		time.Sleep(5 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		if got := h.keys(); !slices.Equal(got, want) || h.twice {
			t.Errorf("delivered %d: %q, at the same time: %v", len(got), got, h.twice)
		}
	})
}

// A sink that outlasts its lease loses the message, and says so.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		stuck := &sink{answer: func(context.Context, outbox.Message, int) error { time.Sleep(10 * time.Minute); return nil }}
		good := &sink{}
		post(t, s, "h", "a")
		stopStuck := run(t, New(l.options(s, map[string]Sink{"h": stuck})))
		synctest.Wait()
		stop := run(t, New(Options{Store: s, Sink: byHost(map[string]Sink{"h": good})}))
		time.Sleep(20 * time.Minute)
		stop()
		stopStuck()
		if !l.fault(ErrLeaseLost) || len(l.kinds()) != 0 || len(good.got) != 1 || len(stuck.got) != 1 {
			t.Errorf("faults %v, delivered %q and %q", l.faults, stuck.got, good.got)
		}
		if r := only(t, s); r.State != outbox.StateDelivered || r.Attempts != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// An attempt has an end, also where the sink waits for ever.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		slow := &sink{answer: func(ctx context.Context, _ outbox.Message, _ int) error { <-ctx.Done(); return ctx.Err() }}
		quick := &sink{}
		post(t, s, "slow", "a")
		stop := run(t, New(l.options(s, map[string]Sink{"slow": slow, "quick": quick})))
		time.Sleep(time.Second)
		post(t, s, "quick", "b")
		time.Sleep(10 * time.Second)
		if len(quick.keys()) != 1 || len(l.kinds()) != 1 {
			t.Errorf("one host holds up another: %v", l.kinds())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if k := l.kinds(); !slices.Equal(k, []Kind{Delivered, Failed}) {
			t.Errorf("told %v", k)
		}
		stop()
	})
}

// The answer to a commit was lost: the same one is asked for again, and the
// message is delivered once.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, h, l := memstore.New(), &sink{}, &told{}
		s := &faulty{Store: inner, after: func(n int, _ *store.Commit) error {
			if n%2 == 1 {
				return store.ErrUnknown
			}
			return nil
		}}
		post(t, inner, "h", "a")
		stop := run(t, New(l.options(s, map[string]Sink{"h": h})))
		time.Sleep(time.Hour)
		stop()
		if r := only(t, inner); len(h.got) != 1 || r.State != outbox.StateDelivered || r.Attempts != 1 || len(journal(t, inner)) != 1 {
			t.Errorf("delivered %q, %+v, recorded %v", h.got, r, journal(t, inner))
		}
	})
}

// A store that is down is not asked all the time, and what it said before holds.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, h, l := memstore.New(), &sink{}, &told{}
		s := &faulty{Store: inner, before: func(int, *store.Commit) error { return errDown }}
		post(t, inner, "h", "a")
		stop := run(t, New(l.options(s, map[string]Sink{"h": h})))
		time.Sleep(10 * time.Minute)
		stop()
		if len(h.got) != 0 || s.commits > 300 || !l.fault(errDown) {
			t.Errorf("delivered %q, %d commits, faults %v", h.got, s.commits, l.faults)
		}
		must(t, inner.Close())
		stop = run(t, New(l.options(inner, nil)))
		time.Sleep(time.Minute)
		stop()
		if !l.fault(store.ErrClosed) || len(l.faults) > 100 {
			t.Errorf("%d faults", len(l.faults))
		}
	})
}

// Nobody delivers to a host: that is told once, and what is for it stays.
func TestNoSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, l := memstore.New(), &sink{}, &told{}
		post(t, s, "h", "a", "b")
		o := l.options(s, nil)
		o.Poll = time.Hour
		stop := run(t, New(o))
		time.Sleep(30 * 24 * time.Hour)
		stop()
		if k := l.kinds(); !slices.Equal(k, []Kind{NoSink}) || !slices.Equal(journal(t, s), k) {
			t.Errorf("told %v, recorded %v", k, journal(t, s))
		}
		must(t, New(l.options(s, map[string]Sink{"h": h})).Drain(t.Context()))
		if !slices.Equal(h.keys(), []string{"a", "b"}) {
			t.Errorf("delivered %q", h.keys())
		}
	})
}

// A drain delivers all that is due, each once, and waits for nothing else.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		h := &sink{answer: func(_ context.Context, m outbox.Message, _ int) error {
			if strings.HasPrefix(m.Key, "bad") {
				return errDown
			}
			return nil
		}}
		sinks := map[string]Sink{}
		for i := range 10 { // more than are delivered to at a time
			host := fmt.Sprint("h", i)
			sinks[host] = h
			post(t, s, host, "good", "bad")
		}
		var many []string
		for i := range 90 { // more than one batch
			many = append(many, fmt.Sprint("k", i))
		}
		post(t, s, "h0", many...)
		start := time.Now()
		o := l.options(s, sinks)
		o.First, o.Longest = 1, 1 // what failed is due again at once
		must(t, New(o).Drain(t.Context()))
		if len(h.got) != 110 || time.Since(start) > time.Second {
			t.Errorf("%d attempts in %v", len(h.got), time.Since(start))
		}
	})
}

func TestDrainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		h := &sink{answer: func(ctx context.Context, _ outbox.Message, _ int) error { <-ctx.Done(); return ctx.Err() }}
		post(t, s, "h", "a", "b")
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, over)
		defer cancel()
		if err := New(l.options(s, map[string]Sink{"h": h})).Drain(ctx); !errors.Is(err, over) {
			t.Errorf("got %v", err)
		}
		list, err := outbox.List(t.Context(), s, 9)
		must(t, err)
		if len(list) != 2 || list[0].State != outbox.StatePending || list[1].State != outbox.StatePending || list[0].Lease != nil || !slices.Equal(l.kinds(), []Kind{Failed}) {
			t.Errorf("told %v, %+v", l.kinds(), list)
		}
		must(t, s.Close())
		if err := New(l.options(s, nil)).Drain(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A record that this version cannot read holds up no other, and is kept.
func TestUnreadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, l := memstore.New(), &sink{}, &told{}
		post(t, s, "h", "a", "b")
		space := store.Space{Principal: "local", Package: "p", Area: store.AreaOutbox}
		_, err := s.Commit(t.Context(), &store.Commit{ID: "new layout", Writes: []store.Write{{Key: outbox.Key(space, "h", "a"), Value: []byte(`{"version":2}`)}}})
		must(t, err)
		stop := run(t, New(l.options(s, map[string]Sink{"h": h})))
		time.Sleep(time.Minute)
		stop()
		if !slices.Equal(h.keys(), []string{"b"}) || len(l.faults) == 0 || len(l.faults) > 20 {
			t.Errorf("delivered %q, %d faults", h.keys(), len(l.faults))
		}
	})
}

// Packages have ends of their own for one host: what one cannot take holds up no
// other, and what nobody here serves is left alone without a word.
func TestPackagesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := memstore.New(), &told{}
		down := &sink{answer: func(context.Context, outbox.Message, int) error { return errDown }}
		good := &sink{}
		for _, pkg := range []string{"down", "good", "elsewhere", "unnamed"} {
			postOf(t, s, pkg, "h", pkg)
		}
		o := l.options(s, nil)
		o.Sink = func(pkg, _ string) (Sink, bool) {
			switch pkg {
			case "down":
				return down, true
			case "good":
				return good, true
			}
			return nil, pkg == "unnamed"
		}
		var last Backlog
		began := time.Now()
		o.Backlog = func(b Backlog) { last = b }
		stop := run(t, New(o))
		time.Sleep(10 * time.Minute)
		stop()
		if !slices.Equal(good.keys(), []string{"good"}) || len(down.keys()) < 3 || slices.Contains(down.keys(), "good") {
			t.Errorf("delivered %q and %q", good.keys(), down.keys())
		}
		for _, e := range l.events {
			if e.Space.Package == "elsewhere" || e.Kind == NoSink && e.Space.Package != "unnamed" {
				t.Errorf("told %+v", e)
			}
		}
		if n := len(slices.DeleteFunc(l.kinds(), func(k Kind) bool { return k != NoSink })); n != 1 {
			t.Errorf("told %d times that nobody takes the message", n)
		}
		if last.Messages != 3 || !last.Since.Equal(began) {
			t.Errorf("backlog %+v, want 3 since %v", last, began)
		}
	})
}
