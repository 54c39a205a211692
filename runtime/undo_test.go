package runtime

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

func TestUndoKeys(t *testing.T) {
	s := memstore.New()
	e := engineOver(t, s)
	p := mustLoad(t, e, keyed(incrementKey, writer), sends1)
	var ids []string
	for range 2 {
		r := p.Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != OK {
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
		ids = append(ids, r.CallID)
	}
	undone := func(who, id string) *Result {
		return e.Undo(t.Context(), UndoRequest{Principal: who, CallID: id, AnyPackage: true})
	}
	if r := undone(LocalPrincipal, ids[0]); r.Outcome != Conflict || !errors.Is(r.Err, undo.ErrChanged) {
		t.Errorf("changed since: %s, %v", r.Outcome, r.Err)
	}
	if r := undone("other", ids[1]); r.Outcome != Refused || !errors.Is(r.Err, undo.ErrNotFound) {
		t.Errorf("another's: %s, %v", r.Outcome, r.Err)
	}
	for i, id := range []string{ids[1], ids[0]} {
		if r := undone(LocalPrincipal, id); r.Outcome != OK || !r.Committed {
			t.Fatalf("undo: %s, %v", r.Outcome, r.Err)
		}
		if got, want := value(t, s, LocalPrincipal), []string{"1", ""}[i]; got != want {
			t.Errorf("left %q, want %q", got, want)
		}
	}
	if r := undone(LocalPrincipal, ids[0]); r.Outcome != Refused || !errors.Is(r.Err, undo.ErrUndone) {
		t.Errorf("twice: %s, %v", r.Outcome, r.Err)
	}
}

// panicking is a store whose commits panic when it is told so.
type panicking struct {
	store.Store
	now bool
}

func (s *panicking) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	if s.now {
		panic("fault")
	}
	return s.Store.Commit(ctx, c)
}

// TestUndoSurvives: a fault of the host in one undo is its result.
func TestUndoSurvives(t *testing.T) {
	s := &panicking{Store: memstore.New()}
	e := engineOver(t, s)
	call := mustLoad(t, e, keyed(incrementKey, writer), sends1).Call(t.Context(), Request{Tool: "t"})
	s.now = true
	if r := e.Undo(t.Context(), UndoRequest{Principal: LocalPrincipal, CallID: call.CallID, AnyPackage: true}); r.Outcome != HostError || !errors.Is(r.Err, errPanic) || r.Committed || !r.Partial {
		t.Errorf("%s, committed %v, partial %v, %v", r.Outcome, r.Committed, r.Partial, r.Err)
	}
	s.now = false
	if r := e.Undo(t.Context(), UndoRequest{Principal: LocalPrincipal, CallID: call.CallID, AnyPackage: true}); r.Outcome != OK {
		t.Errorf("afterwards: %s, %v", r.Outcome, r.Err)
	}
}

// TestUndoWaits: an undo takes its place among the calls, and is one that can be
// turned away.
func TestUndoWaits(t *testing.T) {
	e, err := New(t.Context(), Options{Store: memstore.New(), Limits: CallLimits{Calls: 1, Wait: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	undone := func(ctx context.Context) *Result { return e.Undo(ctx, UndoRequest{CallID: "none", AnyPackage: true}) }
	other, err := e.gate.enter(t.Context(), "other", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r := undone(t.Context()); r.Outcome != Limit || !errors.Is(r.Err, ErrBusy) ||
		textOf(t, r) != "The call was not undone: too many calls are running; try again later." {
		t.Errorf("%s, %v: %s", r.Outcome, r.Err, textOf(t, r))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if r := undone(cancelled); r.Outcome != Timeout {
		t.Errorf("cancelled: %s, %v", r.Outcome, r.Err)
	}
	other.leave()
	if r := undone(t.Context()); r.Outcome != Refused || !errors.Is(r.Err, undo.ErrNotFound) {
		t.Errorf("alone: %s, %v", r.Outcome, r.Err)
	}
	if e.gate.running != 0 || e.gate.memory != 0 {
		t.Errorf("%d calls of %d bytes are left", e.gate.running, e.gate.memory)
	}
}

// TestUndoOfUndo: it puts back what the undo took away, but no message.
func TestUndoOfUndo(t *testing.T) {
	s := memstore.New()
	e := engineOver(t, s)
	undone := func(id string) *Result {
		return e.Undo(t.Context(), UndoRequest{Principal: LocalPrincipal, CallID: id, AnyPackage: true})
	}
	changed := mustLoad(t, e, keyed(incrementKey, writer), sends1).Call(t.Context(), Request{Tool: "t"})
	for i, id := 0, changed.CallID; i < 4; i++ {
		r := undone(id)
		if r.Outcome != OK {
			t.Fatalf("undo %d: %s, %v", i, r.Outcome, r.Err)
		}
		if got, want := value(t, s, LocalPrincipal), strconv.Itoa(i%2); got != want && (got != "" || want != "0") {
			t.Errorf("undo %d left %q", i, got)
		}
		id = r.CallID
	}
	other := keyed(w.Seq(incrementKey, sendOne), capabilities.Claim{})
	other.Manifest.Name = "q"
	sent := mustLoad(t, e, other, sends1).Call(t.Context(), Request{Tool: "t"})
	if sent.Outcome != OK {
		t.Fatalf("%s, %v", sent.Outcome, sent.Err)
	}
	r := undone(sent.CallID)
	if r.Outcome != OK {
		t.Fatalf("undo of a message: %s, %v", r.Outcome, r.Err)
	}
	if r := undone(r.CallID); r.Outcome != Refused || !errors.Is(r.Err, undo.ErrIncomplete) {
		t.Errorf("undo of that: %s, %v", r.Outcome, r.Err)
	}
}
