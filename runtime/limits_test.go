package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// hostile are guests that try to take more than a call has, each with the
// outcome and the limit that end it.
var hostile = []struct {
	name    string
	module  func() []byte
	outcome Outcome
	limit   string
}{
	{"endless loop", func() []byte { return command("", "", w.Forever) }, Timeout, ""},
	{"exponential recursion without a loop", exponential, Timeout, ""},
	{"deep recursion", func() []byte {
		return command("", "", w.Call(imports+1), w.Func{Body: w.Call(imports + 1)})
	}, Limit, "stack"},
	{"memory.grow until refused, then crash", func() []byte {
		// loop: memory.grow(16) != -1 goes on
		return command("", "", w.Seq([]byte{0x03, 0x40}, w.I32Const(16), w.MemoryGrow, w.I32Const(-1), []byte{0x47, 0x0d, 0, 0x0b}, w.Unreachable))
	}, Limit, "memory"},
	{"memory.grow until refused, then exit 1", func() []byte {
		return command("", "", w.Seq([]byte{0x03, 0x40}, w.I32Const(16), w.MemoryGrow, w.I32Const(-1), []byte{0x47, 0x0d, 0, 0x0b}, exit(1)))
	}, Limit, "memory"},
	{"endless output", func() []byte {
		return command("", "", w.Seq([]byte{0x03, 0x40}, write(1, 4096), []byte{0x0c, 0, 0x0b}))
	}, Limit, "output"},
	{"endless writes to a volume", func() []byte {
		return command("new", "", w.Seq(open("new", oflagCreate, rightWrite|rightRead),
			[]byte{0x03, 0x40}, write(-1, 60000), []byte{0x0c, 0, 0x0b}))
	}, Limit, "writes"},
	{"endless log", func() []byte {
		return command("", "", w.Seq([]byte{0x03, 0x40}, write(2, 60000), []byte{0x0c, 0, 0x0b}))
	}, Timeout, ""},
	{"host calls in a row", func() []byte {
		m := w.Module{Memory: [2]uint32{200, 0}, Funcs: []w.Func{
			{Import: "wasi_snapshot_preview1", Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
		}}
		var body []byte
		for range 2000 {
			body = append(body, w.Seq(w.I32Const(0), w.I32Const(12<<20), w.Call(0), w.Drop)...)
		}
		m.Funcs = append(m.Funcs, w.Func{Name: "_start", Body: body})
		return m.Encode()
	}, Timeout, ""},
	{"crash", func() []byte { return command("", "", w.Unreachable) }, ToolError, ""},
	{"exit status", func() []byte { return command("", "", exit(7)) }, ToolError, ""},
}

// exponential calls itself twice, 60 levels deep, with no loop anywhere.
func exponential() []byte {
	fib := w.Func{
		Params: []byte{w.I32},
		Body: w.Seq(
			w.LocalGet(0), []byte{0x04, 0x40}, // if
			w.LocalGet(0), w.I32Const(-1), []byte{0x6a}, w.Call(imports+1),
			w.LocalGet(0), w.I32Const(-1), []byte{0x6a}, w.Call(imports+1),
			[]byte{0x0b}),
	}
	return command("", "", w.Seq(w.I32Const(60), w.Call(imports+1)), fib)
}

// TestHostileGuestsEnd runs each hostile guest while an honest one is called
// in between and the garbage collector wants the world to stop.
func TestHostileGuestsEnd(t *testing.T) {
	e := newEngine(t, Observer{})
	neighbour, _ := load(t, e, pack(command("", "hello", write(1, 5)), tool.Command, readOnly))
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			p := pack(h.module(), tool.Command, writer)
			p.Manifest.Limits.Timeout = time.Minute
			if h.outcome == Timeout {
				p.Manifest.Limits.Timeout = 400 * time.Millisecond
			}
			loaded, dir := load(t, e, p)
			var wg sync.WaitGroup
			done := make(chan struct{})
			wg.Go(func() {
				for {
					if r := neighbour.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
						t.Errorf("neighbour: %s, %v", r.Outcome, r.Err)
					}
					goruntime.GC()
					select {
					case <-done:
						return
					default:
					}
				}
			})
			start := time.Now()
			r := loaded.Call(context.Background(), Request{Tool: "t"})
			close(done)
			wg.Wait()
			if r.Outcome != h.outcome {
				t.Fatalf("outcome %s (%v), want %s", r.Outcome, r.Err, h.outcome)
			}
			var limit *LimitError
			if errors.As(r.Err, &limit) != (h.limit != "") || limit != nil && limit.Limit != h.limit {
				t.Errorf("error %v, want limit %q", r.Err, h.limit)
			}
			if r.Committed || !r.Output.IsError || len(r.Output.Content) == 0 {
				t.Errorf("committed %v, output %+v", r.Committed, r.Output)
			}
			// The collector stops the world without a pause here, on a machine
			// that others use: the bound is wide, and still tells a deadline that
			// holds from one that does not.
			if d := time.Since(start); h.outcome == Timeout && d > 5*time.Second {
				t.Errorf("took %v for a deadline of %v", d, p.Manifest.Limits.Timeout)
			}
			untouched(t, dir)
		})
	}
}

// TestTableGrowIsBounded: a table may grow to 2^32 entries of host memory
// unless the module is rewritten.
func TestTableGrowIsBounded(t *testing.T) {
	// table.grow(ref.null func, 1<<24) must answer -1: trap where it does not.
	body := w.Seq([]byte{0xd0, 0x70}, w.I32Const(1<<24), []byte{0xfc, 15, 0}, w.I32Const(-1), []byte{0x47, 0x04, 0x40}, w.Unreachable, []byte{0x0b})
	m := w.Module{
		Funcs:  []w.Func{{Name: "_start", Body: body}},
		Memory: [2]uint32{1, 0},
		Table:  [2]uint32{1, 0},
	}
	loaded, _ := load(t, newEngine(t, Observer{}), pack(m.Encode(), tool.Command, readOnly))
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Fatalf("outcome %s (%v), want ok", r.Outcome, r.Err)
	}
}

// TestCancelStopsTheGuest: a client that goes away frees the guest.
func TestCancelStopsTheGuest(t *testing.T) {
	p := pack(command("", "", w.Forever), tool.Command, readOnly)
	p.Manifest.Limits.Timeout = time.Minute
	loaded, _ := load(t, newEngine(t, Observer{}), p)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if r := loaded.Call(ctx, Request{Tool: "t"}); r.Outcome != Timeout {
		t.Errorf("outcome %s (%v), want timeout", r.Outcome, r.Err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}
