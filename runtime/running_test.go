package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestCloseStopsWhatRuns: closing stops a guest that runs, waits for its call
// to end, and refuses later ones.
func TestCloseStopsWhatRuns(t *testing.T) {
	began := make(chan struct{}, 10)
	e, err := New(context.Background(), Options{State: t.TempDir(), Observer: Observer{
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
