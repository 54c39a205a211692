package runtime

import (
	"context"
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// TestTenThousandCalls: honest and lying calls of 8 callers leave no memory,
// goroutine or descriptor behind.
func TestTenThousandCalls(t *testing.T) {
	const calls, callers = 10_000, 8
	e := newEngine(t, Observer{})
	honest, _ := load(t, e, pack(reactor(nil, false), tool.Reactor, readOnly))
	writing, _ := load(t, e, pack(writesAndSmiles(), tool.Command, writer))
	lying, dir := load(t, e, pack(writesAndSmiles(), tool.Command, readOnly))
	round := func(n int) {
		var next atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					p, want := honest, OK
					switch i % 3 {
					case 1:
						p, want = lying, Violation
					case 2:
						p = writing
					}
					r := p.Call(context.Background(), Request{Tool: "t"})
					if r.Outcome != want && !(p == writing && r.Outcome == Conflict) {
						t.Errorf("call %d: %s (%v), want %s", i, r.Outcome, r.Err, want)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	round(calls / 10)
	before := take()
	round(calls)
	after := take()
	if after.goroutines > before.goroutines {
		t.Errorf("goroutines %d, were %d", after.goroutines, before.goroutines)
	}
	if after.descriptors > before.descriptors {
		t.Errorf("descriptors %d, were %d", after.descriptors, before.descriptors)
	}
	if after.heap > before.heap+8<<20 {
		t.Errorf("heap %d bytes, was %d", after.heap, before.heap)
	}
	untouched(t, dir)
	t.Logf("before %+v, after %+v", before, after)
}

// held is what a process holds.
type held struct {
	goroutines, descriptors int
	heap                    uint64
}

func take() held {
	for range 3 {
		goruntime.GC()
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	h := held{goroutines: goruntime.NumGoroutine(), heap: m.HeapAlloc}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux; elsewhere not measured
		h.descriptors = len(fds)
	}
	return h
}
