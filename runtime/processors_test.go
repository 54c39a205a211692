package runtime

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// TestProcessorsAreHandedOn: those that wait run in the order in which they came;
// one that yields waits behind them, and one that goes away is forgotten.
func TestProcessorsAreHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcessors(1)
		first := p.seat()
		if err := first.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ran := make(chan string, 10)
		wait := func(name string, ctx context.Context) {
			go func() {
				s := p.seat()
				if err := s.Take(ctx); err != nil {
					ran <- name + " gone"
					return
				}
				ran <- name
				s.Leave()
			}()
			synctest.Wait()
		}
		cause := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		wait("a", t.Context())
		wait("b", ctx)
		wait("c", t.Context())
		cancel(cause)
		synctest.Wait()
		if n := p.waiting.Load(); n != 2 {
			t.Errorf("%d wait, want 2", n)
		}
		if err := first.Yield(t.Context()); err != nil {
			t.Error(err)
		}
		wait("d", t.Context())
		first.Leave()
		first.Leave() // it has none: nothing
		synctest.Wait()
		for _, want := range []string{"b gone", "a", "c", "d"} {
			if got := <-ran; got != want {
				t.Errorf("%s ran, want %s", got, want)
			}
		}
		if p.free != 1 || p.waiting.Load() != 0 || p.queue.Len() != 0 {
			t.Errorf("%d free, %d wait", p.free, p.waiting.Load())
		}
		if err := p.seat().Take(ctx); err != nil {
			t.Errorf("a free one is taken without waiting: %v", err)
		}
		if err := p.seat().Take(ctx); !errors.Is(err, cause) {
			t.Errorf("error %v, want the cause", err)
		}
	})
}

// TestShortCallsPassLongOnes: with one processor, a call ends while another spins, in its
// own code or in that of the host.
func TestShortCallsPassLongOnes(t *testing.T) {
	for name, module := range map[string][]byte{
		"code": command("", "", w.Forever),
		"the host": w.Module{
			Funcs: []w.Func{
				{Import: "wasi_snapshot_preview1", Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
				{Name: "_start", Body: w.Seq(w.Loop, w.I32Const(0), w.I32Const(64<<20), w.Call(0), w.Drop, []byte{0x0c, 0}, w.End)},
			},
			Memory: [2]uint32{1024, 0},
		}.Encode(),
	} {
		t.Run(name, func(t *testing.T) { passes(t, module) })
	}
}

// passes has short calls end while the module runs.
func passes(t *testing.T, module []byte) {
	acquired := make(chan struct{}, 10)
	e := newEngine(t, Observer{Acquired: func(string) { acquired <- struct{}{} }})
	e.cpus = newProcessors(1)
	long := pack(module, tool.Command, readOnly)
	long.Manifest.Limits.Timeout, long.Manifest.Limits.Memory = time.Minute, 128<<20
	spinning, _ := load(t, e, long)
	honest, _ := load(t, e, pack(command("", "hello", write(1, 5)), tool.Command, readOnly))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan *Result)
	go func() { ended <- spinning.Call(ctx, Request{Tool: "t"}) }()
	<-acquired
	for range 5 {
		if r := honest.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
			t.Errorf("%s, %v", r.Outcome, r.Err)
		}
	}
	cancel()
	if r := <-ended; r.Outcome != Timeout {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if e.cpus.free != 1 || e.cpus.waiting.Load() != 0 {
		t.Errorf("%d free, %d wait", e.cpus.free, e.cpus.waiting.Load())
	}
}

// TestStoreIsWaitedForWithoutProcessor: with one processor, a call ends while
// another waits for the store.
func TestStoreIsWaitedForWithoutProcessor(t *testing.T) {
	p := newProcessors(1)
	s := p.seat()
	if err := s.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := s.away(t.Context())
	other := p.seat()
	if err := other.Take(t.Context()); err != nil || s.on {
		t.Errorf("%v", err)
	}
	other.Leave()
	if back(); !s.on {
		t.Error("not taken again")
	}
	s.Leave()
	if (*seat)(nil).away(t.Context())(); p.free != 1 {
		t.Errorf("%d free", p.free)
	}
}

// TestNoSeat: a guest on no processor waits for none, and takes none, whoever asks.
func TestNoSeat(t *testing.T) {
	p := wasi.NewProcess(wasi.Options{Processor: (*seat)(nil)})
	defer p.Close()
	p.Yield(t.Context())
	p.Pause(t.Context())()
	var none *seat
	if err := none.Take(t.Context()); err != nil {
		t.Error(err)
	}
	none.Leave()
}

// TestNoSeatStarts: start-up code runs without a processor, too.
func TestNoSeatStarts(t *testing.T) {
	p := inputs(t, Options{Rewrite: rewriting}, inputPackage("poll"))
	e := p.engine
	i, err := p.factory.ready(t.Context(), &startUp{stderr: io.Discard, ledger: nobody()})
	if err != nil {
		t.Fatal(err)
	}
	e.discard(t.Context(), i)
	i, err = p.instances.Get(t.Context(), &startUp{stderr: io.Discard, ledger: nobody(), replay: true})
	if err != nil {
		t.Fatal(err)
	}
	p.instances.Put(i, Reset)
}
