package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// device is the system's disk as the engine sees it, with what would be left of
// it if the power went away now. It fails when it is told to.
type device struct {
	vfs.VFSFilename
	name string

	mu    sync.Mutex
	ops   int
	fail  func(op int, what, file string) error
	files map[string]*image
}

// image is what of a file is sure to be on the disk, and what may be.
type image struct {
	durable []byte
	named   bool // its name is durable
	pending []change
}

// change writes data at an offset, or cuts the file off there.
type change struct {
	off  int64
	data []byte
	cut  bool
}

func (c change) apply(b []byte) []byte {
	if c.cut {
		return b[:min(int64(len(b)), c.off)]
	}
	if grow := c.off + int64(len(c.data)) - int64(len(b)); grow > 0 {
		b = append(b, make([]byte, grow)...)
	}
	copy(b[c.off:], c.data)
	return b
}

var devices atomic.Int64

func newDevice(t testing.TB) *device {
	d := &device{VFSFilename: vfs.Find("").(vfs.VFSFilename), files: map[string]*image{}}
	d.name = fmt.Sprint("device", devices.Add(1))
	vfs.Register(d.name, d)
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// failing sets what fails from now on; operations are counted from 1.
func (d *device) failing(fail func(op int, what, file string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail = 0, fail
}

// op counts an operation, and tells whether it fails. Callers hold the lock.
func (d *device) op(what, file string) error {
	d.ops++
	if d.fail == nil {
		return nil
	}
	return d.fail(d.ops, what, filepath.Base(file))
}

func (d *device) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := name.String()
	if err := d.op("open", path); err != nil {
		return nil, flags, err
	}
	_, missing := os.Stat(path)
	f, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil || path == "" {
		return f, flags, err
	}
	if d.files[path] == nil {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, flags, err
		}
		d.files[path] = &image{durable: b, named: missing == nil}
	}
	return &deviceFile{File: f, d: d, path: path}, flags, nil
}

func (d *device) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op("delete", name); err != nil {
		return err
	}
	delete(d.files, name)
	return d.VFSFilename.Delete(name, syncDir)
}

// lose writes what could be left of the files to a folder: all that was synced,
// and of the rest what keep chooses, in sectors.
func (d *device) lose(t testing.TB, folder string, keep func() bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, i := range d.files {
		b, named := append([]byte(nil), i.durable...), i.named
		for _, c := range i.pending {
			if !named && !keep() {
				continue
			}
			named = true
			for len(c.data) > 512 {
				if keep() {
					b = change{off: c.off, data: c.data[:512]}.apply(b)
				}
				c.off, c.data = c.off+512, c.data[512:]
			}
			if keep() {
				b = c.apply(b)
			}
		}
		if !named {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// keepers choose what is left: nothing, everything, or some of it.
func keepers(r *rand.Rand) map[string]func() bool {
	return map[string]func() bool{
		"nothing": func() bool { return false }, "everything": func() bool { return true },
		"some": func() bool { return r.IntN(2) == 0 }, "most": func() bool { return r.IntN(20) > 0 },
	}
}

type deviceFile struct {
	vfs.File
	d    *device
	path string
}

func (f *deviceFile) image() *image {
	i := f.d.files[f.path]
	if i == nil {
		i = &image{}
		f.d.files[f.path] = i
	}
	return i
}

func (f *deviceFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	err := f.d.op("write", f.path)
	if err != nil {
		p = p[:len(p)/2] // what a full disk had room for
	}
	i := f.image()
	i.pending = append(i.pending, change{off: off, data: append([]byte(nil), p...)})
	n, e := f.File.WriteAt(p, off)
	if err == nil {
		err = e
	}
	return n, err
}

func (f *deviceFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op("truncate", f.path); err != nil {
		return err
	}
	i := f.image()
	i.pending = append(i.pending, change{off: size, cut: true})
	return f.File.Truncate(size)
}

// Sync makes what was written durable here, and spares the real disk.
func (f *deviceFile) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op("sync", f.path); err != nil {
		return err
	}
	i := f.image()
	for _, c := range i.pending {
		i.durable = c.apply(i.durable)
	}
	i.pending, i.named = nil, true
	return nil
}

func (f *deviceFile) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}

func (f *deviceFile) Unwrap() vfs.File { return f.File }

// LockState and the like would hide that a file is wrapped; none is needed.
var _ vfs.FileSharedMemory = (*deviceFile)(nil)

// sound checks what the engine knows to check.
func soundFile(t testing.TB, s *Store) {
	t.Helper()
	err := s.readers.read(t.Context(), func(c *conn) error {
		for _, p := range []string{"PRAGMA integrity_check", "PRAGMA foreign_key_check"} {
			err := c.rows(p, func(r *sqlite3.Stmt) bool {
				if got := r.ColumnText(0); got != "ok" {
					t.Errorf("%s: %s", p, got)
				}
				return true
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
