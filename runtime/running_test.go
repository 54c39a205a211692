package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestCloseStopsWhatRuns: closing waits for calls, stops their guests, and
// refuses later ones.
func TestCloseStopsWhatRuns(t *testing.T) {
	began := make(chan struct{})
	e, err := New(context.Background(), Options{State: t.TempDir(), Observer: Observer{CallStart: func(CallInfo) { began <- struct{}{} }}})
	if err != nil {
		t.Fatal(err)
	}
	p := pack(command("new", "", w.Seq(open("new", oflagCreate, rightWrite), w.Forever)), tool.Command, writer)
	p.Manifest.Limits.Timeout = time.Minute
	loaded, dir := load(t, e, p)
	ended := make(chan *Result)
	go func() { ended <- loaded.Call(context.Background(), Request{Tool: "t"}) }()
	<-began
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if r := <-ended; r.Outcome != Timeout && r.Outcome != Refused || r.Committed {
		t.Errorf("outcome %s (%v), committed %v", r.Outcome, r.Err, r.Committed)
	}
	go func() { <-began }()
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != Refused || !errors.Is(r.Err, ErrClosed) {
		t.Errorf("after Close: %s (%v)", r.Outcome, r.Err)
	}
	untouched(t, dir)
}
