package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/runtime"
)

// TestCalls prints what whole calls of a minimal guest cost in the engine, by what
// their claims and keys have the host do, on a store of SQLite.
func TestCalls(t *testing.T) {
	empty := minimal(t)
	keep := func(what sort) *keeper {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		fill(t, s)
		return newKeeper(t, s, what)
	}
	remembered := keep(writing)
	for caller := range mostCalls {
		if _, err := remembered.call(t.Context(), caller, 0, fmt.Sprint("key ", caller)); err != nil {
			t.Fatal(err)
		}
	}
	ways := []way{
		{"read-only, looks at nothing", func(ctx context.Context, _ int, _ int64) (time.Duration, error) {
			began := time.Now()
			r := empty.Call(ctx, runtime.Request{Tool: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)})
			if r.Outcome != runtime.OK {
				return 0, r.Err
			}
			return time.Since(began), nil
		}},
		keep(reading).whole("read-only, gets two keys", func(int64) string { return "" }),
		keep(writing).whole("commits two keys", func(int64) string { return "" }),
		keep(writing).whole("commits them under an idempotency key", func(n int64) string { return fmt.Sprint("key ", n) }),
		keep(repeating).whole("commits them, idempotent: run twice", func(int64) string { return "" }),
		{"its key again: the first result", func(ctx context.Context, caller int, _ int64) (time.Duration, error) {
			began := time.Now()
			r, err := remembered.call(ctx, caller, 0, fmt.Sprint("key ", caller))
			if err == nil && !r.Remembered {
				err = errors.New("the call was run again")
			}
			return time.Since(began), err
		}},
	}
	for _, n := range numbers(t, *callers) {
		reportWays(t, "Whole calls", n, []content{{"a call", ways}})
	}
}

// whole measures whole calls, each under a key of its own where there is one.
func (k *keeper) whole(name string, key func(n int64) string) way {
	return way{name, func(ctx context.Context, caller int, n int64) (time.Duration, error) {
		began := time.Now()
		r, err := k.call(ctx, caller, n, key(n))
		took := time.Since(began)
		switch {
		case err != nil:
			return took, err
		case k.sort == repeating && r.Replay != runtime.Idempotent && r.Replay != runtime.TimeDependent:
			return took, fmt.Errorf("replay: %q", r.Replay)
		}
		return took, nil
	}}
}
