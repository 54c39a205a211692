package asyncify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// A result that is kept waits for no run, and who gives up waits for none.
func TestMeanwhile(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	if err := syscall.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Cache: filepath.Join(t.TempDir(), "cache")}
	if _, err := script(t, o, copying(t, rewritten())).Rewrite(t.Context(), reader()); err != nil {
		t.Fatal(err)
	}
	slow := script(t, o, "cat >/dev/null; echo >"+began+"; sleep 600")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := slow.Rewrite(ctx, reader(w.Func{Name: "more"}))
		done <- err
	}()
	if _, err := os.ReadFile(began); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Rewrite(t.Context(), reader()); err != nil {
		t.Errorf("a result that is kept: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := slow.Rewrite(gone, reader(w.Func{Name: "other"})); !errors.Is(err, context.Canceled) {
		t.Errorf("gave up: %v", err)
	}
	stop()
	if err := <-done; err == nil {
		t.Error("the run that was stopped is a success")
	}
}
