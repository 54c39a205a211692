package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestCloseStopsWhatRuns: closing stops a guest that runs, waits for its call
// to end, and refuses later ones.
func TestCloseStopsWhatRuns(t *testing.T) {
	began := make(chan struct{}, 10)
	e, err := New(context.Background(), Options{Store: memstore.New(), State: t.TempDir(), Observer: Observer{
		Denial: func(CallInfo, capabilities.Denial) { began <- struct{}{} },
	}})
	if err != nil {
		t.Fatal(err)
	}
	// The guest writes, is denied a socket, by which the test knows that it
	// runs, and spins.
	body := w.Seq(open("new", oflagCreate, rightWrite), w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop, w.Forever)
	p := pack(command("new", "", body), tool.Command, capabilities.Claim{})
	p.Manifest.Limits.Timeout = time.Minute
	loaded, dir := load(t, e, p)
	ended := make(chan *Result)
	go func() { ended <- loaded.Call(context.Background(), Request{Tool: "t"}) }()
	<-began
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if r := <-ended; r.Outcome != Timeout || !errors.Is(r.Err, ErrClosed) || r.Committed {
		t.Errorf("outcome %s (%v), committed %v", r.Outcome, r.Err, r.Committed)
	}
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != Refused || !errors.Is(r.Err, ErrClosed) {
		t.Errorf("after Close: %s (%v)", r.Outcome, r.Err)
	}
	untouched(t, dir)
}

// TestDrainLetsCallsEnd: no further call begins, not even one that waits, those
// that run are committed, and the time for it is the caller's.
func TestDrainLetsCallsEnd(t *testing.T) {
	e, began, release := stalling(t, Options{})
	loaded := mustLoad(t, e, stalls(), Binding{Limits: CallLimits{Calls: 1, Wait: time.Minute}})
	running := calls(context.Background(), loaded)
	<-began
	waiting := calls(context.Background(), loaded)
	queues(loaded.gate, 1)
	impatient := errors.New("impatient")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(impatient)
	if err := e.Drain(ctx); !errors.Is(err, impatient) {
		t.Errorf("drain: %v", err)
	}
	if r := <-waiting; r.Outcome != Refused || !errors.Is(r.Err, ErrClosed) {
		t.Errorf("waiting: %s, %v", r.Outcome, r.Err)
	}
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != Refused || !errors.Is(r.Err, ErrClosed) {
		t.Errorf("late: %s, %v", r.Outcome, r.Err)
	}
	if _, err := e.Load(context.Background(), stalls(), Binding{}); !errors.Is(err, ErrClosed) {
		t.Errorf("load: %v", err)
	}
	close(release)
	if err := e.Drain(context.Background()); err != nil {
		t.Errorf("drain: %v", err)
	}
	if r := <-running; r.Outcome != OK || !r.Committed {
		t.Errorf("running: %s, %v, committed %v", r.Outcome, r.Err, r.Committed)
	}
}

// TestPackageIsClosedAlone: its calls end or are stopped, those of another one
// made from the same module go on.
func TestPackageIsClosedAlone(t *testing.T) {
	e, began, release := stalling(t, Options{})
	old, successor := mustLoad(t, e, stalls(), Binding{As: "old"}), mustLoad(t, e, stalls(), Binding{As: "successor"})
	running := calls(context.Background(), old)
	<-began
	closed := make(chan error)
	go func() { closed <- old.Close(context.Background()) }()
	for r := (*Result)(nil); r == nil || r.Outcome != Refused; {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // until it is closed the call is cancelled before it runs
		if r = old.Call(ctx, Request{Tool: "t"}); r.Outcome == Refused && !errors.Is(r.Err, ErrClosed) {
			t.Fatal(r.Err)
		}
		if r.Outcome == Refused && textOf(t, r) != "t was not called: its package was unloaded." {
			t.Errorf("said %q", textOf(t, r))
		}
	}
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if r := <-running; r.Outcome != OK || !r.Committed {
		t.Errorf("running: %s, %v, committed %v", r.Outcome, r.Err, r.Committed)
	}
	if err := old.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if r := successor.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Errorf("successor: %s, %v", r.Outcome, r.Err)
	}
}

// TestCloseOfAPackageStopsWhatStays when its time is over.
func TestCloseOfAPackageStopsWhatStays(t *testing.T) {
	began := make(chan struct{}, 1)
	e := newEngine(t, Observer{Denial: func(CallInfo, capabilities.Denial) { began <- struct{}{} }})
	body := w.Seq(open("new", oflagCreate, rightWrite), w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop, w.Forever)
	p := pack(command("new", "", body), tool.Command, capabilities.Claim{})
	p.Manifest.Limits.Timeout = time.Minute
	loaded, dir := load(t, e, p)
	ended := calls(context.Background(), loaded)
	<-began
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := loaded.Close(ctx); err != nil {
		t.Error(err)
	}
	r := <-ended
	if r.Outcome != Timeout || !errors.Is(r.Err, ErrClosed) || r.Committed {
		t.Errorf("%s, %v, committed %v", r.Outcome, r.Err, r.Committed)
	}
	if got, want := textOf(t, r), "t was stopped: its package was unloaded. The changes that it had made were not saved."; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	untouched(t, dir)
}

// TestReloadsLeaveNothingBehind: loading and closing a package over and over
// keeps no descriptor and no goroutine.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	e := newEngine(t, Observer{})
	round := func() {
		loaded := mustLoad(t, e, pack(writesAndSmiles(), tool.Command, writer), Binding{})
		for _, principal := range []string{"", "alice", "bob"} {
			if r := loaded.Call(context.Background(), Request{Tool: "t", Principal: principal}); r.Outcome != OK {
				t.Fatalf("%s, %v", r.Outcome, r.Err)
			}
		}
		if err := loaded.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	before := take()
	for range 20 {
		round()
	}
	if after := take(); after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestTheCauseOfACancelledCallIsKept for the host's log.
func TestTheCauseOfACancelledCallIsKept(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	e := newEngine(t, Observer{Denial: func(CallInfo, capabilities.Denial) { cancel(gone) }})
	body := w.Seq(w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop, w.Forever)
	p := pack(command("new", "", body), tool.Command, capabilities.Claim{})
	p.Manifest.Limits.Timeout = time.Minute
	loaded, _ := load(t, e, p)
	r := loaded.Call(ctx, Request{Tool: "t"})
	if r.Outcome != Timeout || !errors.Is(r.Err, gone) {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if got, want := textOf(t, r), "t was stopped: the caller cancelled it. It had changed nothing."; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
