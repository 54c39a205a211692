package runtime

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

var errStuck = errors.New("stuck")

// stuck is a store that keeps no blob before its caller gives up.
type stuck struct{ store.Store }

func (stuck) PutBlob(ctx context.Context, _ []byte) (store.Digest, error) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second): // it never gives up
	}
	return store.Digest{}, errors.Join(ctx.Err(), errStuck)
}

// TestKeepingTheOldHasTheCallsTime: what was there is kept before the commit, which
// nobody can cancel.
func TestKeepingTheOldHasTheCallsTime(t *testing.T) {
	p := pack(command("big", "new", w.Seq(open("big", oflagTrunc, rightWrite), write(-1, 3))), tool.Command, writer)
	p.Manifest.Limits.Timeout = 300 * time.Millisecond
	loaded, dir := load(t, engineOver(t, stuck{memstore.New()}), p)
	was := bytes.Repeat([]byte("old content\n"), 10_000)
	if err := os.WriteFile(filepath.Join(dir, "big"), was, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := loaded.Call(t.Context(), Request{Tool: "t"}); r.Outcome != Timeout || r.Committed {
		t.Errorf("%s (%v), committed %v", r.Outcome, r.Err, r.Committed)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "big")); err != nil || !bytes.Equal(b, was) {
		t.Errorf("left %d bytes, %v", len(b), err)
	}
}

// TestLaterCallsAreKeptAsLong: a loss that was accepted can be taken back for as long
// as was said only with what was done on top of it.
func TestLaterCallsAreKeptAsLong(t *testing.T) {
	const month = 30 * 24 * time.Hour
	additive := capabilities.Claim{Destructive: capabilities.False, OpenWorld: capabilities.False}
	e := engineOver(t, memstore.New())
	var calls []string
	for _, body := range [][]byte{setTo("1"), setTo("2"), incrementKey} { // made, lost, added to
		p := mustLoad(t, e, keyed(body, additive), Binding{Outbox: []string{host}, Relaxations: tool.Relaxations{Recoverable: month}})
		r := p.Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != OK {
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
		calls = append(calls, r.CallID)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now, err := e.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range calls {
		k, err := undo.Find(t.Context(), now, LocalPrincipal, id)
		if err != nil {
			t.Fatal(err)
		}
		if k.HoldUntil.Before(time.Now().Add(month - time.Hour)) {
			t.Errorf("call %d is held until %v", i, k.HoldUntil)
		}
	}
}
