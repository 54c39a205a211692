package files_test

import (
	"errors"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func mustOpen(t *testing.T, w *world, path string, in files.Intent) *files.Handle {
	t.Helper()
	h, err := w.root.Open(path, in)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	return h
}

func content(t *testing.T, h *files.Handle) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := h.ReadAt(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestLimit: a spent budget stops the guest in a volume, and is ENOSPC and a
// denial in scratch.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget *volume.Budget
		do     func(*world) error
	}{
		{"create", &volume.Budget{Bytes: 1 << 20}, open("new", files.Intent{Write: true, Create: true})},
		{"truncate", &volume.Budget{Bytes: 1 << 20}, open("file", files.Intent{Write: true, Truncate: true})},
		{"write", &volume.Budget{Files: 10}, on("file", both, write("longer than it was", 0))},
		{"append", &volume.Budget{Files: 10}, on("file", both, add("more"))},
		{"set size", &volume.Budget{Files: 10}, on("file", both, size(1000))},
		{"allocate", &volume.Budget{Files: 10}, on("file", both, allocate(0, 1000))},
		{"mkdir", &volume.Budget{Bytes: 1 << 20}, named((*files.Handle).Mkdir, "new")},
		{"unlink", &volume.Budget{Bytes: 1 << 20}, named((*files.Handle).Unlink, "file")},
		{"rename", &volume.Budget{Bytes: 1 << 20}, rename("file", "new")},
		{"set times", &volume.Budget{Bytes: 1 << 20}, on("file", reading, times(files.Times{Modify: later}))},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(authority{claim: capabilities.Effective{Destructive: true}, access: capabilities.WriteAccess}, c.budget)
			if _, ok := errors.AsType[*volume.LimitError](c.do(w)); !ok {
				t.Error("volume: no limit error")
			}
			w = newWorld(authority{scratch: true}, c.budget)
			if err := c.do(w); !errors.Is(err, capabilities.ENOSPC) {
				t.Errorf("scratch: %v, want ENOSPC", err)
			}
			want := capabilities.Denial{
				Capability: capabilities.CapScratch, Operation: capabilities.OpWrite, Object: "/data", Errno: capabilities.ENOSPC,
			}
			if d := w.ledger.Denials(); len(d) != 1 || d[0] != want {
				t.Errorf("scratch: denials %v, want %v", d, want)
			}
			if c := w.changes(); len(c) > 1 {
				t.Errorf("scratch: changed %v", c)
			}
		})
	}
}

// TestContent: what was written is there, also after the file lost its name.
func TestContent(t *testing.T) {
	w := newWorld(authorities[1], ample())
	h := mustOpen(t, w, "file", both)
	if _, err := h.WriteAt([]byte("NEW"), 0); err != nil {
		t.Fatal(err)
	}
	n, end, err := h.Append([]byte("more"))
	if n != 4 || end != 16 || err != nil {
		t.Fatalf("append: %d bytes to %d, %v", n, end, err)
	}
	if err := w.root.Rename("file", w.root, "dir/moved"); err != nil {
		t.Fatal(err)
	}
	if err := w.root.Unlink("dir/moved"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, h); got != "NEW content\nmore" {
		t.Errorf("content %q", got)
	}
	if i, err := h.Stat(); err != nil || i.Size != 16 {
		t.Errorf("stat: %d bytes, %v", i.Size, err)
	}
	if err := h.Allocate(0, 2); err != nil {
		t.Fatal(err)
	}
	if err := h.SetSize(3); err != nil {
		t.Fatal(err)
	}
	if got := content(t, h); got != "NEW" {
		t.Errorf("content %q", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestHandleOfDirectory: paths count from the directory that was opened.
func TestHandleOfDirectory(t *testing.T) {
	w := newWorld(authorities[1], ample())
	d := mustOpen(t, w, "dir", files.Intent{Read: true, Directory: true})
	i, err := d.StatPath("inner", false)
	if err != nil || i.Size != 6 {
		t.Errorf("stat: %d bytes, %v", i.Size, err)
	}
	up, err := d.Open("..", reading)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Rename("inner", up, "outer"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.root.StatPath("outer", false); err != nil {
		t.Error(err)
	}
	l, err := d.ReadDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := w.root.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if l[1].Name != ".." || l[1].Inode != root.Inode {
		t.Errorf("parent %+v, want inode %d", l[1], root.Inode)
	}
	for _, h := range []*files.Handle{up, d} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClosed: a closed handle does nothing any more.
func TestClosed(t *testing.T) {
	w := newWorld(authorities[1], ample())
	f := mustOpen(t, w, "file", both)
	d := mustOpen(t, w, "dir", reading)
	if f.Close() != nil || d.Close() != nil {
		t.Fatal("close")
	}
	for name, err := range map[string]error{
		"close":     f.Close(),
		"read":      read(1, 0)(f),
		"write":     write("x", 0)(f),
		"append":    add("x")(f),
		"set size":  size(1)(f),
		"allocate":  allocate(0, 1)(f),
		"set times": times(files.Times{Modify: later})(f),
		"sync":      f.Sync(),
		"list":      list(d),
		"mkdir":     d.Mkdir("new"),
		"rename":    d.Rename("inner", d, "new"),
	} {
		if !errors.Is(err, capabilities.EBADF) {
			t.Errorf("%s: %v, want EBADF", name, err)
		}
	}
	if c := w.changes(); len(c) > 0 {
		t.Errorf("changed %v", c)
	}
}

// TestNames: a volume can be told and enumerated, sealed or not.
func TestNames(t *testing.T) {
	v := files.Sealed("data", "/data")
	if v.Name() != "data" || v.Mount() != "/data" || !v.Sealed() {
		t.Errorf("sealed volume %q at %q", v.Name(), v.Mount())
	}
	if h := v.Root(); h.Kind() != volume.Dir || h.Volume() != v || h.Writable() {
		t.Error("root of a sealed volume is no directory")
	}
	if err := v.Root().Close(); err != nil {
		t.Error(err)
	}
}

// TestEmptyIsNoRead: to find out whether a directory can be removed or replaced
// is not to list it.
func TestEmptyIsNoRead(t *testing.T) {
	w := newWorld(authorities[1], ample())
	for name, err := range map[string]error{
		"rmdir":  w.root.Rmdir("dir"),
		"rename": w.root.Rename("hollow", w.root, "dir"),
	} {
		if !errors.Is(err, capabilities.ENOTEMPTY) {
			t.Errorf("%s: %v, want ENOTEMPTY", name, err)
		}
	}
	if e := w.tree.Effects("/data"); len(e) > 0 {
		t.Errorf("effects %v", e)
	}
}

// TestNoTree: a volume without a tree is sealed, whatever was granted.
func TestNoTree(t *testing.T) {
	w := newWorld(authorities[1], ample())
	_, err := files.New("data", "/data", nil, w.ledger).Root().StatPath("file", true)
	if _, ok := errors.AsType[*files.SealedError](err); !ok {
		t.Errorf("%v, want a sealed volume", err)
	}
}
