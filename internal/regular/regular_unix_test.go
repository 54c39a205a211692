//go:build unix

package regular

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipe: no call waits for somebody to write.
func TestPipe(t *testing.T) {
	root := lay(t)
	pipe := filepath.Join(root.Name(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	atOnce := func(name string, want error, f func() error) {
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			if err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for a writer", name)
		}
	}
	atOnce("Read", ErrIrregular, func() error { _, err := Read(root, "pipe", 1); return err })
	atOnce("ReadNoLink", ErrLink, func() error { _, _, err := ReadNoLink(root, "pipe", 1); return err })
	atOnce("open", ErrIrregular, func() error { _, _, err := open(root, "pipe"); return err })
	atOnce("Subfolder", ErrLink, func() error { _, err := Subfolder(root, "pipe"); return err })
	atOnce("Folder", nil, func() error { _, err := Folder(pipe); return err })
	atOnce("OpenRoot", nil, func() error { _, err := root.OpenRoot(asFolder("pipe")); return err })
}

// TestSwapped has another file under a name all the time: each read is of one of
// them or an error, and none waits.
func TestSwapped(t *testing.T) {
	root := lay(t)
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		swap(t, at, stop)
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3000 {
			if b, err := Read(root, "x", 6); err == nil && string(b) != "text" {
				t.Errorf("Read: %q", b)
			}
			if b, _, err := ReadNoLink(root, "x", 6); err == nil && string(b) != "text" {
				t.Errorf("ReadNoLink: %q", b)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("waits for a writer")
	}
	close(stop)
	<-stopped
}

// swap puts a file, a pipe and a link out of the folder at x by turns.
func swap(t *testing.T, at func(string) string, stop chan struct{}) {
	for {
		for _, put := range []func() error{
			func() error { return os.Link(at("pipe"), at("new")) },
			func() error { return os.Link(at("d/f"), at("new")) },
			func() error { return os.Symlink(at("out/f"), at("new")) },
		} {
			select {
			case <-stop:
				return
			default:
			}
			if err := errors.Join(put(), os.Rename(at("new"), at("x"))); err != nil {
				t.Error(err)
				return
			}
		}
	}
}
