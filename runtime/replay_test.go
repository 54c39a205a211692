package runtime

import (
	"context"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
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
