package runtime

import (
	"context"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestThirdLookIsOfTheFirstCommit: calls that fail do not do away with it.
func TestThirdLookIsOfTheFirstCommit(t *testing.T) {
	idempotent := capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
	runs := 0
	s := &counting{Store: memstore.New()}
	e, err := New(t.Context(), Options{Store: s, Observer: Observer{Released: func(string) { runs++ }}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	p := mustLoad(t, e, keyed(w.Seq(putKey), idempotent), sends1)
	for i, c := range []struct {
		fault error
		want  Outcome
		runs  int
	}{{errStuck, HostError, 3}, {nil, OK, 3}, {nil, OK, 2}} {
		runs, s.fault = 0, c.fault
		if r := p.Call(t.Context(), Request{Tool: "t"}); r.Outcome != c.want || runs != c.runs {
			t.Errorf("call %d: %s (%v) after %d runs, want %s after %d", i, r.Outcome, r.Err, runs, c.want, c.runs)
		}
	}
}

// TestThirdLook: the first call that is committed and changes something was run a
// third time. One that met a conflict was not the first.
func TestThirdLook(t *testing.T) {
	s := &counting{Store: memstore.New()}
	runs := 0
	e, err := New(t.Context(), Options{Store: s, Observer: Observer{
		Released: func(string) { runs++ },
		Conflict: func(CallInfo) { s.fault = nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	idempotent := capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
	p := mustLoad(t, e, keyed(w.Seq(getKey, putKey), idempotent), sends1)
	s.fault = store.ErrConflict
	for _, want := range []int{6, 2} {
		runs = 0
		if r := p.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK || r.Replay != Idempotent {
			t.Fatalf("%s, %s, %v", r.Outcome, r.Replay, r.Err)
		}
		if runs != want {
			t.Errorf("%d runs, want %d", runs, want)
		}
	}
}

// TestCancelledBeforeTheUndoRecord: what undoing takes is kept in the call's own
// time, so a call that is cancelled until then leaves nothing.
func TestCancelledBeforeTheUndoRecord(t *testing.T) {
	s := memstore.New()
	ctx, cancel := context.WithCancel(t.Context())
	e, err := New(t.Context(), Options{Store: s, Observer: Observer{Replayed: func(CallInfo, Replay) { cancel() }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	idempotent := capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
	p := mustLoad(t, e, keyed(putKey, idempotent), sends1)
	if r := p.Call(ctx, Request{Tool: "t"}); r.Outcome != Timeout || r.Committed {
		t.Errorf("%s, committed %v, %v", r.Outcome, r.Committed, r.Err)
	}
	if got := value(t, s, LocalPrincipal); got != "" {
		t.Errorf("left %q", got)
	}
}

// TestReplaysStartAnew: what start-up code took for the time breaks idempotence, on
// images, new instances, and ones that were made ahead.
func TestReplaysStartAnew(t *testing.T) {
	const atTime = 512
	clock := w.Func{Import: "wasi_snapshot_preview1", Name: "clock_time_get", Params: []byte{w.I32, w.I64, w.I32}, Results: []byte{w.I32}}
	m := w.Module{
		Funcs: append(append([]w.Func{}, wasiImports...), clock,
			w.Func{Name: "_initialize", Body: w.Seq(w.I32Const(0), w.I64Const(0), w.I32Const(atTime), w.Call(imports), w.Drop)},
			w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.Seq(
				open("new", oflagCreate|oflagTrunc, rightWrite), storeI32(atIovec, atTime), storeI32(atIovec+4, 8),
				w.I32Const(atFD), []byte{0x28, 2, 0}, w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(fdWrite), w.Drop,
				w.I64Const(int64(atText)<<32|int64(len(cheerful))))},
		),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte("new"), atText: []byte(cheerful)},
	}
	for _, s := range strategies {
		e, err := New(t.Context(), Options{Store: memstore.New(), Strategy: s})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := load(t, e, pack(m.Encode(), tool.Reactor, capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}))
		for range 5 {
			if r := p.Call(t.Context(), Request{Tool: "t"}); r.Outcome != Violation || r.Replay != Further {
				t.Errorf("%s: %s, replay %q: %v", s, r.Outcome, r.Replay, r.Err)
			}
			if f, ahead := p.instances.(*fresh); ahead && s == StrategyPrestarted {
				f.work.Wait() // one waits for the next call
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
