//go:build unix

package build

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// within a test, a call that waits for the other end of a pipe never ends.
const waits = time.Minute

// TestPipes has a pipe in place of each file that a build reads, put there when
// all looks were over.
func TestPipes(t *testing.T) {
	mod := goSource(says("x"))
	for _, name := range []string{"main.go", "go.mod", "go.sum", "vendor/modules.txt", "sub", "sub/sub.go"} {
		dir := tree(t, t.TempDir(), mod)
		o, err := locate(dir, inPlace)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "main.go"), "package main\n\nimport _ \"example.com/x/sub\"\n\nfunc main() {}\n")
		pipe(t, filepath.Join(dir, filepath.FromSlash(name)))
		done := make(chan error, 1)
		temp := t.TempDir()
		go func() {
			_, err := take(t.Context(), &goTool{command: "go", dir: temp, source: dir}, temp, o)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, ErrSource) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(waits):
			t.Fatalf("%s: waits for a writer", name)
		}
	}
}

// TestManifestIsNotReadAgain: the ABI is what the manifest said when it was
// checked. What is there now is no concern of the builder.
func TestManifestIsNotReadAgain(t *testing.T) {
	dir := tree(t, t.TempDir(), map[string]string{"src/go.mod": exampleMod, "src/main.go": says("x")})
	pipe(t, filepath.Join(dir, "tool.yaml"))
	build := builder(t, Options{}).Func(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := build(dir, tool.Source{Language: "go", Dir: "src"}, tool.Reactor)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(waits):
		t.Fatal("reads the manifest, and waits for a writer")
	}
}

// pipe puts a pipe in place of what is there.
func pipe(t *testing.T, name string) {
	t.Helper()
	tree(t, filepath.Dir(name), map[string]string{filepath.Base(name): ""})
	if err := syscall.Unlink(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
}
