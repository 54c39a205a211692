package runtime

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/image"
	"github.com/sandboxd/sandboxd/tool"
)

// instancesOf counts those of an engine that are not discarded.
func instancesOf(e *Engine) (n int) {
	e.slots.Range(func(_, _ any) bool { n++; return true })
	return n
}

// together makes n calls, all of which run at one time before any ends.
func together(t *testing.T, p *Package, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { p.Call(ctx, Request{Tool: "l"}) }) // it does not end by itself
	}
	for deadline := time.Now().Add(time.Minute); instancesOf(p.engine) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the calls do not begin")
		}
	}
	cancel()
	wg.Wait()
}

// TestInstancesAreUsedAgain, and the gauge knows how many wait.
func TestInstancesAreUsedAgain(t *testing.T) {
	var idle atomic.Int64
	var resets, others atomic.Int64
	e, p := leaving(t, tool.Reactor, Options{Observer: Observer{
		Idle: func(_ string, change int) { idle.Add(int64(change)) },
		Reset: func(_, method string, took time.Duration) {
			if method == methodNew || method == methodPrestarted || took <= 0 {
				others.Add(1)
			}
			resets.Add(1)
		},
	}})
	for range 20 {
		said(t, p, "a")
	}
	if n := instancesOf(e); n != 1 || idle.Load() != 1 || resets.Load() != 20 || others.Load() != 0 {
		t.Errorf("%d instances, %d idle, %d resets, %d of another kind", n, idle.Load(), resets.Load(), others.Load())
	}
	p.Call(context.Background(), Request{Tool: "r"}) // deep recursion
	if n := instancesOf(e); n != 0 || idle.Load() != 0 {
		t.Errorf("after a stack overflow: %d instances, %d idle", n, idle.Load())
	}
	together(t, p, 5)
	if n := instancesOf(e); n != 5 || idle.Load() != 5 {
		t.Errorf("after 5 calls at one time: %d instances, %d idle", n, idle.Load())
	}
	if err := p.Close(context.Background()); err != nil || instancesOf(e) != 0 || idle.Load() != 0 {
		t.Errorf("after closing the package: %d instances, %d idle, %v", instancesOf(e), idle.Load(), err)
	}
}

// TestClosedInstanceIsDiscarded: the engine may close what it runs.
func TestClosedInstanceIsDiscarded(t *testing.T) {
	e, p := leaving(t, tool.Reactor, Options{})
	said(t, p, "a")
	e.slots.Range(func(_, i any) bool {
		if err := i.(*Instance).module.CloseWithExitCode(context.Background(), 1); err != nil {
			t.Error(err)
		}
		return true
	})
	p.Call(context.Background(), Request{Tool: "a"})
	for range 2 {
		if got := said(t, p, "a"); got != fresh6 {
			t.Error(got)
		}
	}
	if n := instancesOf(e); n != 1 {
		t.Errorf("%d instances", n)
	}
}

// TestBudget: instances that wait take no more than they may, of all packages
// together, and those that have waited longest go.
func TestBudget(t *testing.T) {
	const room = 3
	e, p := leaving(t, tool.Reactor, Options{Warm: room*instanceBytes + 64<<10})
	other := pack(leaver(tool.Reactor), tool.Reactor, readOnly)
	other.Manifest.Name, other.Manifest.Tools[0].Name = "q", "a"
	q := mustLoad(t, e, other, Binding{})
	said(t, q, "a")
	together(t, p, 8)
	if n := instancesOf(e); n > room || e.warm.held > e.warm.most {
		t.Errorf("%d instances wait, of %d bytes", n, e.warm.held)
	}
	if n := q.instances.(*pool).shelf.waiting(); n != 0 {
		t.Errorf("%d of the package that was called first wait", n)
	}
	for _, loaded := range []*Package{p, q} {
		if got := said(t, loaded, "a"); got != fresh6 {
			t.Error(got)
		}
	}
}

// TestTrim: after a minute one instance waits, after ten none does.
func TestTrim(t *testing.T) {
	e, p := leaving(t, tool.Reactor, Options{})
	together(t, p, 4)
	now := time.Now()
	for after, want := range map[time.Duration]int{0: 4, idleFew - time.Second: 4} {
		e.warm.trim(now.Add(after - time.Second))
		if n := instancesOf(e); n != want {
			t.Errorf("after %v: %d instances, want %d", after, n, want)
		}
	}
	e.warm.trim(now.Add(idleFew + time.Second))
	if n := instancesOf(e); n != 1 {
		t.Errorf("after a minute: %d instances", n)
	}
	e.warm.trim(now.Add(idleOne + time.Second))
	if n := instancesOf(e); n != 0 {
		t.Errorf("after ten: %d instances", n)
	}
	if got := said(t, p, "a"); got != fresh6 {
		t.Error(got)
	}
}

// TestTrimTakesFat: after half a minute an instance that waits has given back the pages
// that calls wrote, and is as good as before.
func TestTrimTakesFat(t *testing.T) {
	const much = 8 << 20
	m := w.Module{
		Funcs: append(append([]w.Func{}, wasiImports...), w.Func{Name: "_start", Body: w.Seq(
			w.I32Const(1<<16), w.I32Const(7), w.I32Const(much), w.MemoryFill, write(1, 2))}),
		Memory: [2]uint32{much>>16 + 1, 0},
		Data:   map[uint32][]byte{atText: []byte("ok")},
	}
	e := newEngine(t, Observer{})
	p, _ := load(t, e, pack(m.Encode(), tool.Command, writer))
	for range 3 {
		said(t, p, "t")
		fat := e.warm.held
		e.warm.trim(time.Now().Add(idleFat - time.Second))
		if e.warm.held != fat {
			t.Errorf("%d bytes of %d after less than half a minute", e.warm.held, fat)
		}
		e.warm.trim(time.Now().Add(idleFat + time.Second))
		method := p.instances.(*pool).shelf.idle[0].memory.Method()
		if mapped := method == image.MethodScan || method == image.MethodPagemap; mapped && (fat < much || e.warm.held > much/2) {
			t.Errorf("%s: %d bytes of %d after half a minute", method, e.warm.held, fat)
		}
	}
	if n := instancesOf(e); n != 1 {
		t.Errorf("%d instances", n)
	}
}

// TestUsedMeanwhile: what a call had since it was seen to wait keeps its pages.
func TestUsedMeanwhile(t *testing.T) {
	e, p := leaving(t, tool.Reactor, Options{})
	said(t, p, "a")
	s, late := p.instances.(*pool).shelf, time.Now().Add(idleFat)
	i := s.take()
	if !e.warm.slim(i, late) || i.lean {
		t.Error("a call's instance was trimmed")
	}
	for range 100 { // with the race detector
		var looks sync.WaitGroup
		looks.Go(func() { e.warm.slim(i, late) })
		goruntime.Gosched() // no order is kept by this, either may be first
		s.put(i)
		looks.Wait()
		i = s.take()
	}
	s.put(i)
	if !e.warm.slim(i, late) || i.lean {
		t.Error("an instance that has just come back was trimmed")
	}
	if !e.warm.slim(i, late.Add(idleFat)) || !i.lean {
		t.Error("one that waits was not")
	}
}

// TestCloseLeavesNothing: no goroutine and no instance, whatever the strategy, and
// whether the packages are closed or the engine alone.
func TestCloseLeavesNothing(t *testing.T) {
	for _, s := range strategies {
		for _, first := range []bool{true, false} {
			before := goleak.IgnoreCurrent()
			e, err := New(context.Background(), Options{Store: memstore.New(), Strategy: s})
			if err != nil {
				t.Fatal(err)
			}
			source := pack(leaver(tool.Reactor), tool.Reactor, readOnly)
			source.Manifest.Tools[0].Name = "a"
			p := mustLoad(t, e, source, Binding{})
			for range 3 {
				said(t, p, "a")
			}
			if first {
				err = p.Close(context.Background())
			}
			if err != nil || e.Close(context.Background()) != nil || instancesOf(e) != 0 || e.warm.held != 0 {
				t.Errorf("%s: %v, %d instances, %d bytes", s, err, instancesOf(e), e.warm.held)
			}
			goleak.VerifyNone(t, before)
		}
	}
}

// TestPrestarted: a call gets an instance that was started before it, with what that
// one wrote to its log.
func TestPrestarted(t *testing.T) {
	var methods []string
	var mu sync.Mutex
	e, err := New(context.Background(), Options{Store: memstore.New(), Strategy: StrategyPrestarted, Observer: Observer{
		Reset: func(_, method string, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			methods = append(methods, method)
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	p := mustLoad(t, e, pack(reactor(write(2, 5), false), tool.Reactor, readOnly), Binding{})
	for range 5 {
		r := p.Call(context.Background(), Request{Tool: "t"})
		if r.Outcome != OK || string(r.Stderr) != cheerful[:5] {
			t.Errorf("%s, %v, log %q", r.Outcome, r.Err, r.Stderr)
		}
	}
	if got := strings.Join(methods, " "); got != "new prestarted prestarted prestarted prestarted" {
		t.Error(got)
	}
}

// TestPrestartedOnesFail: what start-up code does when no call waits for it is
// nobody's; a call starts one by itself then.
func TestPrestartedOnesFail(t *testing.T) {
	odd := w.Seq(w.I32Const(atText+16), w.I32Const(1), w.Call(0), w.Drop, w.I32Const(atText+16), []byte{0x2d, 0, 0}, w.I32Const(3), []byte{0x71}, w.If, w.Unreachable, w.End)
	m := w.Module{
		Funcs: []w.Func{
			randomGet,
			{Name: "_initialize", Body: odd},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(atText<<32 | 8)},
		},
		Memory: [2]uint32{1, 0}, Data: map[uint32][]byte{atText: []byte("........")},
	}
	e := newEngine(t, Observer{})
	var p *Package
	for p == nil {
		p, _ = e.Load(context.Background(), pack(m.Encode(), tool.Reactor, readOnly), Binding{})
	}
	outcomes := map[Outcome]int{}
	for range 100 {
		r := p.Call(context.Background(), Request{Tool: "t"})
		outcomes[r.Outcome]++
	}
	if outcomes[OK] == 0 || outcomes[OK]+outcomes[ToolError] != 100 {
		t.Error(fmt.Sprint(outcomes))
	}
}
