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

// hiding returns a volume with names that cannot be shown, in d/sub and in d2.
func hiding(t *testing.T) (*HostDir, string) {
	h, dir := planted(t, map[string]string{"d/sub/": "", "d2/": "", "e/": "", "new/": ""})
	if os.WriteFile(dir+"/d/sub/bad\xff", nil, 0o644) != nil {
		t.Skip("this file system takes no such names")
	}
	must(t, os.WriteFile(dir+"/d2/bad\xff", nil, 0o644))
	return h, dir
}

// A directory with names that cannot be shown is not empty, and does not move:
// the guest is told, and not the commit.
func TestForeignNamesStay(t *testing.T) {
	h, dir := hiding(t)
	before := image(t, dir)
	g := overlay(t, h)
	for path, want := range map[string]bool{"d/sub": false, "d2": false, "d": false, "e": true} {
		n, err := g.node(path, true)
		must(t, err)
		if empty, err := g.Empty(n); err != nil || empty != want {
			t.Errorf("%s empty: %v, %v", path, empty, err)
		}
	}
	if e := g.Effects("/v"); len(e) != 0 {
		t.Errorf("effects %v", e)
	}
	for path, err := range map[string]error{"d/sub": g.rm("d/sub"), "d2": g.rm("d2"), "over d2": g.mv("new", "d2")} {
		if !errors.Is(err, capabilities.ENOTEMPTY) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for from, err := range map[string]error{"d": g.mv("d", "n"), "d/sub": g.mv("d/sub", "n"), "d2": g.mv("d2", "e")} {
		if !errors.Is(err, capabilities.EXDEV) {
			t.Errorf("move %s: %v", from, err)
		}
	}
	must(t, g.rm("e"))
	must(t, g.commit(t, h))
	delete(before, "e")
	sameImage(t, image(t, dir), before)
}

// Names that cannot be shown and come or go are a conflict for who was told
// whether there are any.
func TestForeignNamesConflict(t *testing.T) {
	h, dir := hiding(t)
	for path, meanwhile := range map[string]func() error{
		"d2": func() error { return os.Remove(dir + "/d2/bad\xff") },
		"e":  func() error { return os.WriteFile(dir+"/e/bad\xff", nil, 0o644) },
	} {
		g := overlay(t, h)
		n, err := g.node(path, true)
		must(t, err)
		_, err = g.Empty(n)
		must(t, err)
		must(t, meanwhile())
		if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The root is not empty while the host's own names are in it.
func TestReservedNamesAreEntries(t *testing.T) {
	h, _ := planted(t, map[string]string{".sandboxd-x/": ""})
	g := overlay(t, h)
	if empty, err := g.Empty(g.Root()); err != nil || empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
	if list, err := g.List(g.Root()); err != nil || len(list) != 0 {
		t.Errorf("list %v, %v", list, err)
	}
}

// A link whose target cannot be shown stays where it is.
func TestForeignLinksStay(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/d", 0o755))
	if os.Symlink("bad\xff", dir+"/d/link") != nil {
		t.Skip("this file system takes no such names")
	}
	g := overlay(t, open(t, dir))
	for from, err := range map[string]error{"link": g.mv("d/link", "n"), "directory": g.mv("d", "n")} {
		if !errors.Is(err, capabilities.EILSEQ) {
			t.Errorf("%s: %v", from, err)
		}
	}
	must(t, g.rm("d/link"))
	must(t, g.rm("d"))
	must(t, g.commit(t, g.base.(Store)))
}

// Only one answer says that somebody else holds the lock.
func TestLockAnswers(t *testing.T) {
	for _, c := range []struct {
		system error
		state  lockState
		fault  bool
	}{
		{nil, locked, false},
		{syscall.EWOULDBLOCK, lockedByOther, false},
		{syscall.ENOTSUP, lockless, false},
		{syscall.EBADF, lockless, false},
		{syscall.ENOLCK, lockedByOther, true},
		{syscall.EIO, lockedByOther, true},
	} {
		state, err := lockAnswer(c.system)
		if (err != nil) != c.fault || (err == nil && state != c.state) {
			t.Errorf("%v: %v, %v", c.system, state, err)
		}
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
	h, err := OpenDir(dir)
	must(t, err)
	defer h.Close()
	if _, err := h.Open("none"); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("open: %v", err)
	}
	if _, err := h.Readlink("none"); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("readlink: %v", err)
	}
}
