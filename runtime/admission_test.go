package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// stalling returns an engine whose guests made by stalls say on began that they
// run, and then wait for release.
func stalling(t *testing.T, o Options) (e *Engine, began chan string, release chan struct{}) {
	t.Helper()
	began, release = make(chan string, 100), make(chan struct{})
	o.State = t.TempDir()
	o.Observer = Tee(o.Observer, Observer{Denial: func(c CallInfo, _ capabilities.Denial) {
		began <- c.Package
		select {
		case <-release:
		case <-t.Context().Done(): // the test failed
		}
	}})
	o.Store = memstore.New()
	e, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, began, release
}

// stalls makes a file and is denied a socket: there the observer of stalling
// waits.
func stalls() *tool.Package {
	body := w.Seq(open("new", oflagCreate, rightWrite), w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop)
	p := pack(command("new", "", body), tool.Command, capabilities.Claim{})
	p.Manifest.Limits.Timeout = time.Minute
	return p
}

func mustLoad(t testing.TB, e *Engine, p *tool.Package, b Binding) *Package {
	t.Helper()
	loaded, err := e.Load(context.Background(), p, b)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// calls calls the package's tool in the background.
func calls(ctx context.Context, p *Package) <-chan *Result { return callsAs(ctx, p, LocalPrincipal) }

func callsAs(ctx context.Context, p *Package, principal string) <-chan *Result {
	ended := make(chan *Result, 1)
	go func() { ended <- p.Call(ctx, Request{Tool: "t", Principal: principal}) }()
	return ended
}

// queues waits until so many calls wait at the gate.
func queues(g *gate, n int) {
	for {
		g.mu.Lock()
		now := len(g.queue)
		g.mu.Unlock()
		if now == n {
			return
		}
		goruntime.Gosched()
	}
}

// TestTooManyCalls: beyond what may run calls wait, beyond what may wait they
// are turned away, and the time that a call waits is not the tool's.
func TestTooManyCalls(t *testing.T) {
	e, began, release := stalling(t, Options{})
	p := stalls()
	loaded := mustLoad(t, e, p, Binding{Limits: CallLimits{Calls: 1, Waiting: 1, Wait: time.Minute}})
	first := calls(context.Background(), loaded)
	<-began
	second := calls(context.Background(), loaded)
	queues(loaded.gate, 1)
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	var busy *BusyError
	if r.Outcome != Limit || !errors.As(r.Err, &busy) || !errors.Is(r.Err, ErrBusy) || busy.RetryAfter < time.Second || busy.Scope != "package p" {
		t.Errorf("third call: %s, %v", r.Outcome, r.Err)
	}
	if got, want := textOf(t, r), "t was not called: too many calls are running; try again in 1 s."; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	close(release)
	if r := <-first; r.Outcome != OK || r.Waited > r.Duration {
		t.Errorf("first call: %s, %v, waited %v", r.Outcome, r.Err, r.Waited)
	}
	if r := <-second; r.Outcome != OK || r.Waited <= 0 || r.Waited > r.Duration {
		t.Errorf("second call: %s, %v, waited %v of %v", r.Outcome, r.Err, r.Waited, r.Duration)
	}
}

// TestWaitingIsBounded in time, and by the caller.
func TestWaitingIsBounded(t *testing.T) {
	e, began, release := stalling(t, Options{})
	loaded := mustLoad(t, e, stalls(), Binding{Limits: CallLimits{Calls: 1, Wait: 20 * time.Millisecond}})
	first := calls(context.Background(), loaded)
	<-began
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != Limit || !errors.Is(r.Err, ErrBusy) {
		t.Errorf("waited too long: %s, %v", r.Outcome, r.Err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if r := loaded.Call(ctx, Request{Tool: "t"}); r.Outcome != Timeout || !errors.Is(r.Err, gone) {
		t.Errorf("cancelled while it waits: %s, %v", r.Outcome, r.Err)
	}
	close(release)
	if r := <-first; r.Outcome != OK {
		t.Errorf("first call: %s, %v", r.Outcome, r.Err)
	}
}

// TestAStalledPackageBlocksNoOther: its calls wait for one another, not in the
// engine's queue.
func TestAStalledPackageBlocksNoOther(t *testing.T) {
	e, began, release := stalling(t, Options{Limits: CallLimits{Calls: 2, Waiting: 1}})
	stalled := mustLoad(t, e, stalls(), Binding{As: "stalled", Limits: CallLimits{Calls: 1}})
	other := mustLoad(t, e, pack(command("", "", nil), tool.Command, readOnly), Binding{As: "other"})
	var all []<-chan *Result
	for range 10 {
		all = append(all, calls(context.Background(), stalled))
	}
	<-began
	queues(stalled.gate, 9)
	if r := other.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Errorf("other: %s, %v", r.Outcome, r.Err)
	}
	close(release)
	for _, c := range all {
		if r := <-c; r.Outcome != OK {
			t.Errorf("stalled: %s, %v", r.Outcome, r.Err)
		}
	}
}

// TestEngineWideLimits: packages share what the engine may run and the memory
// that it may take.
func TestEngineWideLimits(t *testing.T) {
	for name, limits := range map[string]CallLimits{
		"calls":  {Calls: 1, Wait: 20 * time.Millisecond},
		"memory": {Memory: 20 << 20, Wait: 20 * time.Millisecond}, // one call's is 16 MiB
	} {
		e, began, release := stalling(t, Options{Limits: limits})
		one, two := mustLoad(t, e, stalls(), Binding{As: "one"}), mustLoad(t, e, stalls(), Binding{As: "two"})
		first := calls(context.Background(), one)
		<-began
		r := two.Call(context.Background(), Request{Tool: "t"})
		var busy *BusyError
		if r.Outcome != Limit || !errors.As(r.Err, &busy) || busy.Scope != "host" {
			t.Errorf("%s: %s, %v", name, r.Outcome, r.Err)
		}
		close(release)
		if r := <-first; r.Outcome != OK {
			t.Errorf("%s: first call: %s, %v", name, r.Outcome, r.Err)
		}
		if r := two.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
			t.Errorf("%s: afterwards: %s, %v", name, r.Outcome, r.Err)
		}
	}
}

// TestNoPrincipalTakesAllPlaces: of one package, or of the engine by calls of
// several; of the calls, of the memory, and of the places to wait.
func TestNoPrincipalTakesAllPlaces(t *testing.T) {
	two := footprint(stalls().Manifest.Limits) * 2
	for name, limits := range map[string]CallLimits{
		"calls":  {Calls: 2, Waiting: 2, Wait: time.Minute},
		"memory": {Memory: two, Waiting: 2, Wait: time.Minute},
	} {
		for scope, packages := range map[string]int{"package": 1, "host": 3} {
			t.Run(name+" of the "+scope, func(t *testing.T) {
				var o Options
				var b Binding
				if scope == "host" {
					o.Limits = limits
				} else {
					b.Limits = limits
				}
				e, began, release := stalling(t, o)
				var loaded []*Package
				for i := range packages {
					b.As = fmt.Sprint("p", i)
					loaded = append(loaded, mustLoad(t, e, stalls(), b))
				}
				at := func(i int) *Package { return loaded[i%packages] }
				crowded := e.gate
				if scope == "package" {
					crowded = at(0).gate
				}
				all := []<-chan *Result{callsAs(t.Context(), at(0), "alice")}
				<-began
				all = append(all, callsAs(t.Context(), at(1), "alice"))
				queues(crowded, 1)
				if r := at(2).Call(t.Context(), Request{Tool: "t", Principal: "alice"}); r.Outcome != Limit || !errors.Is(r.Err, ErrBusy) {
					t.Errorf("alice's third: %s, %v", r.Outcome, r.Err)
				}
				all = append(all, callsAs(t.Context(), at(2), "bob"))
				<-began // beside alice's
				all = append(all, callsAs(t.Context(), at(2), "bob"))
				queues(crowded, 2)
				close(release)
				for i, c := range all {
					if r := <-c; r.Outcome != OK {
						t.Errorf("call %d: %s, %v", i, r.Outcome, r.Err)
					}
				}
			})
		}
	}
}

// TestALargeCallRunsAlone, though it takes more than a principal's half.
func TestALargeCallRunsAlone(t *testing.T) {
	p := pack(command("", "", nil), tool.Command, readOnly)
	limits := CallLimits{Calls: 1, Memory: footprint(p.Manifest.Limits)}
	e, _, _ := stalling(t, Options{Limits: limits})
	loaded := mustLoad(t, e, p, Binding{Limits: limits})
	if r := loaded.Call(t.Context(), Request{Tool: "t", Principal: "alice"}); r.Outcome != OK {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
}

// TestLimitsThatCannotBeKept are errors at load.
func TestLimitsThatCannotBeKept(t *testing.T) {
	e := newEngine(t, Observer{})
	for _, l := range []CallLimits{{Memory: 1 << 20}, {Calls: -1}, {Wait: -1}} {
		var load *LoadError
		_, err := e.Load(context.Background(), pack(command("", "", nil), tool.Command, readOnly), Binding{Limits: l})
		if !errors.As(err, &load) || load.Phase != "binding" {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := New(context.Background(), Options{Limits: CallLimits{Waiting: -1}}); err == nil {
		t.Error("negative limits of an engine are taken")
	}
}
