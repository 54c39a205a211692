package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing/fstest"
	"time"
)

// memDisk is a folder whose power can go away: contents that were not synced
// are lost then, and names that were not synced are as they were.
type memDisk struct {
	mu      sync.Mutex
	ops     int
	fail    func(op int, what string) error
	now     map[string]*memFile            // by path
	durable map[string]map[string]*memFile // by folder, by name
	folders map[string]bool                // made; true: durable
}

type memFile struct {
	data, synced []byte
	at           time.Time
}

func newMemDisk() *memDisk {
	return &memDisk{now: map[string]*memFile{}, durable: map[string]map[string]*memFile{".": {}}, folders: map[string]bool{".": true}}
}

func (d *memDisk) do(what string, f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.fail != nil {
		if err := d.fail(d.ops, what); err != nil {
			return &fs.PathError{Op: what, Err: err}
		}
	}
	return f()
}

func (d *memDisk) failing(fail func(op int, what string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail = 0, fail
}

// powerLoss is the disk after the power came back.
func (d *memDisk) powerLoss() *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := newMemDisk()
	for folder, durable := range d.folders {
		if !durable {
			continue
		}
		out.folders[folder] = true
		out.durable[folder] = map[string]*memFile{}
		for name, f := range d.durable[folder] {
			g := &memFile{data: append([]byte(nil), f.synced...), synced: f.synced, at: f.at}
			out.now[path.Join(folder, name)] = g
			out.durable[folder][name] = g
		}
	}
	return out
}

func (d *memDisk) Create(name string) (f file, err error) {
	err = d.do("create", func() error {
		if _, ok := d.folders[path.Dir(name)]; !ok {
			return fs.ErrNotExist
		}
		m := &memFile{at: time.Now()}
		d.now[name] = m
		f = &memHandle{d, m}
		return nil
	})
	return f, err
}

func (d *memDisk) Open(name string) (r io.ReadCloser, err error) {
	err = d.do("open", func() error {
		m := d.now[name]
		if m == nil {
			return fs.ErrNotExist
		}
		r = io.NopCloser(strings.NewReader(string(m.data)))
		return nil
	})
	return r, err
}

func (d *memDisk) Rename(from, to string) error {
	return d.do("rename", func() error {
		if d.now[from] == nil {
			return fs.ErrNotExist
		}
		if _, ok := d.folders[path.Dir(to)]; !ok {
			return fs.ErrNotExist
		}
		d.now[to] = d.now[from]
		delete(d.now, from)
		return nil
	})
}

func (d *memDisk) Remove(name string) error {
	return d.do("remove", func() error {
		if d.now[name] == nil {
			return fs.ErrNotExist
		}
		delete(d.now, name)
		return nil
	})
}

func (d *memDisk) Mkdir(name string) error {
	return d.do("mkdir", func() error {
		if _, ok := d.folders[name]; !ok {
			d.folders[name] = false
		}
		return nil
	})
}

func (d *memDisk) SyncFolder(name string) error {
	return d.do("sync folder", func() error {
		if name == "." {
			for f := range d.folders {
				d.folders[f] = true
			}
		}
		d.durable[name] = map[string]*memFile{}
		for p, f := range d.now {
			if path.Dir(p) == name {
				d.durable[name][path.Base(p)] = f
			}
		}
		return nil
	})
}

func (d *memDisk) Stat(name string) (info fs.FileInfo, err error) {
	err = d.do("stat", func() error {
		m := d.now[name]
		if _, ok := d.folders[name]; !ok && m == nil {
			return fs.ErrNotExist
		}
		file := &fstest.MapFile{Mode: fs.ModeDir}
		if m != nil {
			file = &fstest.MapFile{Data: m.data, ModTime: m.at}
		}
		info, err = fstest.MapFS{"f": file}.Stat("f")
		return err
	})
	return info, err
}

func (d *memDisk) List(name string) (out []string, err error) {
	err = d.do("list", func() error {
		names := map[string]bool{}
		for p := range maps.Keys(d.now) {
			if path.Dir(p) == name {
				names[path.Base(p)] = true
			}
		}
		for p := range d.folders {
			if path.Dir(p) == name && p != name {
				names[path.Base(p)] = true
			}
		}
		for n := range names {
			out = append(out, n)
		}
		return nil
	})
	return out, err
}

func (d *memDisk) Close() error { return nil }

// age makes files older.
func (d *memDisk) age(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.now {
		f.at = f.at.Add(-by)
	}
}

type memHandle struct {
	d *memDisk
	f *memFile
}

func (h *memHandle) Write(p []byte) (n int, err error) {
	err = h.d.do("write", func() error {
		h.f.data = append(h.f.data, p...)
		n = len(p)
		return nil
	})
	if errors.Is(err, syscall.ENOSPC) { // it took the half
		h.f.data = append(h.f.data, p[:len(p)/2]...)
		n = len(p) / 2
	}
	return n, err
}

func (h *memHandle) Sync() error {
	return h.d.do("sync", func() error {
		h.f.synced = append([]byte(nil), h.f.data...)
		return nil
	})
}

func (h *memHandle) Close() error { return h.d.do("close", func() error { return nil }) }
