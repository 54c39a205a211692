package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/runtime"
)

// callOnce is a process that makes one call and says its id and what it saw.
func callOnce(ctx context.Context, j job, w *world, _ *steps) error {
	var ops []operation
	if err := json.Unmarshal([]byte(j.Args[1]), &ops); err != nil {
		return err
	}
	saw, r := w.call(ctx, j.Args[0], ops, runtime.Notify{})
	if r.Outcome != runtime.OK || r.Err != nil {
		return fmt.Errorf("call: %s, %w, %s", r.Outcome, r.Err, textOf(r))
	}
	fmt.Println("call", r.CallID, saw[0])
	return nil
}

// undoOne is a process that takes back a call.
func undoOne(ctx context.Context, j job, w *world, _ *steps) error {
	r := w.engine.Undo(ctx, runtime.UndoRequest{Principal: runtime.LocalPrincipal, CallID: j.Args[0], AnyPackage: true})
	if r.Outcome != runtime.OK || r.Err != nil {
		return fmt.Errorf("undo: %s, %w, %s", r.Outcome, r.Err, textOf(r))
	}
	fmt.Println("undone", r.CallID)
	return nil
}

// elsewhere makes a call in a process of its own and returns its id and what it
// saw.
func (p place) elsewhere(t *testing.T, name string, o operation) (id, saw string) {
	t.Helper()
	text, err := json.Marshal([]operation{o})
	if err != nil {
		t.Fatal(err)
	}
	if !start(t, job{Place: p, Do: "call", Args: []string{name, string(text)}}).wait(func(f []string) {
		if id = f[1]; len(f) > 2 {
			saw = f[2]
		}
	}) {
		t.Fatal("the process did not end well")
	}
	return id, saw
}

// TestUndoneElsewhere has one process write a large file, and others read it and
// take it back.
func TestUndoneElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	undoneElsewhere(t, place{Program: "steps", State: t.TempDir()})
}

func undoneElsewhere(t *testing.T, p place) {
	const size = 10_000_000
	const file = "/data/large"
	digest := func() string {
		_, saw := p.elsewhere(t, "look", operation{Do: "digest", Name: file})
		return saw
	}
	of := func(text string) string {
		sum := sha256.Sum256(bytes.Repeat([]byte(text), size/len(text)))
		return "=" + hex.EncodeToString(sum[:])
	}
	undo := func(id string) {
		t.Helper()
		if !start(t, job{Place: p, Do: "undo", Args: []string{id}}).wait(nil) {
			t.Fatal("not undone")
		}
	}
	first, _ := p.elsewhere(t, "do", operation{Do: "fill", Name: file, Text: "first....\n", N: size})
	second, _ := p.elsewhere(t, "do", operation{Do: "fill", Name: file, Text: "second...\n", N: size})
	if got := digest(); got != of("second...\n") {
		t.Errorf("another process reads %s", got)
	}
	undo(second)
	if got := digest(); got != of("first....\n") {
		t.Errorf("after the second call is undone: %s", got)
	}
	undo(first)
	if got := digest(); got != "-" {
		t.Errorf("after the first call is undone: %s", got)
	}
}

// TestFolderOnFileSystemOff calls a tool on a folder of another file system than
// the store's. A change by somebody else during the call is noticed although it
// changes neither size nor time.
func TestFolderOnFileSystemOff(t *testing.T) {
	p := folder(t, apart(t), "disk")
	w := p.opened(t, hooks{})
	file := filepath.Join(p.Folders["disk"], "f")
	w.must(t, "do", operation{Do: "write", Name: "/disk/f", Text: "one"})
	if b, err := os.ReadFile(file); err != nil || string(b) != "one" {
		t.Fatalf("the folder has %q, %v", b, err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	change := sync.OnceFunc(func() {
		if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil {
			t.Error(err)
		}
	})
	ops := []operation{{Do: "read", Name: "/disk/f"}, {Do: "wait"}, {Do: "copy", Name: "/disk/f", To: "/disk/g"}}
	saw, r := w.call(t.Context(), "do", ops, runtime.Notify{Log: func(runtime.LogMessage) { change() }})
	if want := []string{"=two", "", "=two"}; !slices.Equal(saw, want) {
		t.Errorf("%s, %v: saw %q, want %q", r.Outcome, r.Err, saw, want)
	}
	if n := w.conflicts.Load(); n != 1 {
		t.Errorf("%d runs met a conflict", n)
	}
	if b, err := os.ReadFile(filepath.Join(p.Folders["disk"], "g")); err != nil || string(b) != "two" {
		t.Errorf("the folder has %q, %v", b, err)
	}
}
