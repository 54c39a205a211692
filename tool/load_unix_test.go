//go:build unix

package tool

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestLoadSwapped: an author who swaps a pipe, or a file without end, for a file
// of the package does not keep a load from ending.
func TestLoadSwapped(t *testing.T) {
	for _, name := range []string{"tool.yaml", "a.wasm"} {
		dir := folder(t, map[string]string{"tool.yaml": small, "a.wasm": emptyModule})
		spare := t.TempDir()
		at := func(name string) string { return filepath.Join(spare, name) }
		if err := errors.Join(os.Rename(filepath.Join(dir, name), at("file")), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
			t.Fatal(err)
		}
		stop, stopped, done := make(chan struct{}), make(chan struct{}), make(chan int)
		go func() {
			defer close(stopped)
			for {
				for _, put := range []func() error{
					func() error { return os.Link(at("pipe"), at("new")) },
					func() error { return os.Link(at("file"), at("new")) },
					func() error { return os.Symlink("/dev/zero", at("new")) },
				} {
					select {
					case <-stop:
						return
					default:
					}
					if err := errors.Join(put(), os.Rename(at("new"), filepath.Join(dir, name))); err != nil {
						t.Error(err)
						return
					}
				}
			}
		}()
		go func() {
			for range 1000 {
				_, _ = Load(dir, nil) // some succeed
				_, _ = Load(filepath.Join(dir, "a.wasm"), nil)
			}
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s: a load waits for a writer", name)
		}
		close(stop)
		<-stopped
	}
}
