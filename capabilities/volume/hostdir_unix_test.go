//go:build unix

package volume

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// A pipe is listed, never opened, and nothing waits for its other end. It can
// be moved and removed.
func TestPipe(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/f": "f"})
	must(t, syscall.Mkfifo(filepath.Join(dir, "d", "pipe"), 0o644))
	must(t, syscall.Mkfifo(filepath.Join(dir, "gone"), 0o644))
	g := overlay(t, h)
	d, err := g.node("d", true)
	must(t, err)
	list, err := g.List(d)
	if err != nil || len(list) != 2 || list[1].Kind != Special {
		t.Errorf("list %+v, %v", list, err)
	}
	n, err := g.node("d/pipe", true)
	must(t, err)
	if err := g.Open(n); !errors.Is(err, capabilities.EACCES) {
		t.Errorf("open: %v", err)
	}
	if _, err := h.Open("d/pipe"); !errors.Is(err, capabilities.EACCES) {
		t.Errorf("open in the base: %v", err)
	}
	if _, err := h.Open("d"); !errors.Is(err, capabilities.EISDIR) {
		t.Errorf("open of a directory: %v", err)
	}
	must(t, g.mv("d", "e"))
	must(t, g.rm("gone"))
	must(t, g.commit(t, h))
	fi, err := os.Lstat(filepath.Join(dir, "e", "pipe"))
	if err != nil || fi.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("moved: %v, %v", fi, err)
	}
	if got := image(t, filepath.Join(dir, "e")); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
}

// A file that is swapped for a pipe after it was looked at is not waited for.
func TestSwappedForPipe(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	g := overlay(t, h)
	n, err := g.node("f", true)
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "f")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "f"), 0o644))
	if _, err := g.ReadAt(n, make([]byte, 1), 0); !errors.Is(err, capabilities.EACCES) {
		t.Errorf("read: %v", err)
	}
	if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
		t.Errorf("commit: %v", err)
	}
}

// Names that are no UTF-8 cannot be told apart by guests: they are not there.
func TestForeignNames(t *testing.T) {
	dir := t.TempDir()
	if os.WriteFile(dir+"/bad\xff", nil, 0o644) != nil {
		t.Skip("this file system takes no such names")
	}
	must(t, os.WriteFile(dir+"/good", nil, 0o644))
	h := open(t, dir)
	list, err := h.ReadDir(".")
	if err != nil || len(list) != 1 || list[0].Name != "good" {
		t.Errorf("list %+v, %v", list, err)
	}
	if _, _, err := h.Lstat("bad\xff"); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("lstat: %v", err)
	}
	must(t, os.Symlink("bad\xff", dir+"/link"))
	g := overlay(t, h)
	if _, err := g.node("link", true); !errors.Is(err, capabilities.EILSEQ) {
		t.Errorf("link: %v", err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	if goruntime.GOOS != "linux" {
		t.Skip("descriptors cannot be counted")
	}
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// An overlay holds one descriptor per file that is open and was read, and none
// after the last release, a commit, a failed commit, or Close.
func TestDescriptors(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "old", "g": "g", "d/x": "x"})
	start := descriptors(t)
	expect := func(when string, more int) {
		t.Helper()
		if n := descriptors(t); n != start+more {
			t.Errorf("%s: %d descriptors more, want %d", when, n-start, more)
		}
	}
	g := &guest{New(h, Options{Budget: ample()})}
	n, err := g.node("f", true)
	must(t, err)
	g.content(t, "f")
	expect("read without open", 0)
	must(t, g.Open(n))
	must(t, g.Open(n))
	expect("opened", 0)
	g.content(t, "f")
	g.content(t, "f")
	expect("read", 1)
	must(t, g.rm("f"))
	g.Release(n)
	expect("released once", 1)
	g.Release(n)
	expect("released", 0)
	must(t, g.mv("d", "e"))
	must(t, g.write("g", "new", 0))
	_, err = g.Change()
	must(t, err)
	expect("compared", 0)

	n, err = g.node("g", true)
	must(t, err)
	must(t, g.Open(n))
	_, err = g.WriteAt(n, []byte("x"), 0)
	must(t, err)
	must(t, g.commit(t, h))
	must(t, g.Close())
	must(t, g.Close())
	expect("committed and closed", 0)
	if err := g.Open(n); !errors.Is(err, capabilities.EBADF) {
		t.Errorf("open after close: %v", err)
	}

	h.disk.fault = func(op, _ string) error {
		if op == "rename" {
			return errors.New("injected")
		}
		return nil
	}
	g = &guest{New(h, Options{Budget: ample()})}
	must(t, g.write("g", strings.Repeat("x", 100), 1))
	if err := g.commit(t, h); err == nil {
		t.Error("commit succeeded")
	}
	must(t, g.Close())
	expect("commit failed", 0)
}

func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenDir(filepath.Join(dir, "none")); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("missing: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	if _, err := OpenDir(filepath.Join(dir, "f")); err == nil {
		t.Errorf("a file: %v", err)
	}
	h, err := Managed(filepath.Join(dir, "a", "b"))
	must(t, err)
	defer h.Close()
	fi, err := os.Stat(filepath.Join(dir, "a", "b"))
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("managed: %v, %v", fi.Mode(), err)
	}
	if _, err := h.Open("none"); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("open: %v", err)
	}
	if _, err := h.Readlink("none"); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("readlink: %v", err)
	}
}
