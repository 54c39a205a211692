package runtime

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// folders holds the open folders of an engine, one per folder on disk: packages
// that share a folder share its lock.
type folders struct {
	mu     sync.Mutex
	byPath map[string]*folder // the newest of a path
	open   map[*folder]struct{}
	closed bool
}

// folder is an open folder of the host. It is closed when its last user
// releases it.
type folder struct {
	path  string
	dir   *volume.HostDir
	info  fs.FileInfo // which folder was at the path when it was opened
	users int
}

// acquire opens the folder, or returns it where it is open, for one more user.
func (f *folders) acquire(dir string, open func(string) (*volume.HostDir, error)) (*folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errEngineClosed
	}
	path := resolved(dir)
	if d, ok := f.byPath[path]; ok && d.current() {
		d.users++
		return d, nil
	}
	opened, err := open(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	d := &folder{path: path, dir: opened, info: info, users: 1}
	if f.byPath == nil {
		f.byPath, f.open = map[string]*folder{}, map[*folder]struct{}{}
	}
	f.byPath[path], f.open[d] = d, struct{}{}
	return d, nil
}

// current reports whether the folder is still the one at its path. One that was
// moved away or replaced is not where the operator looks for what a call saved.
func (d *folder) current() bool {
	info, err := os.Stat(d.path)
	return err == nil && os.SameFile(info, d.info)
}

// retain adds a user to a folder that has one. nil is no folder.
func (f *folders) retain(d *folder) {
	if d == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d.users++
}

// release takes a user away. nil is no folder.
func (f *folders) release(d *folder) error {
	if d == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d.users--
	if _, open := f.open[d]; !open || d.users > 0 {
		return nil
	}
	delete(f.open, d)
	if f.byPath[d.path] == d {
		delete(f.byPath, d.path)
	}
	return d.dir.Close()
}

// close closes all of them. No user may be at work.
func (f *folders) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for d := range f.open {
		errs = append(errs, d.dir.Close())
	}
	f.byPath, f.open, f.closed = nil, nil, true
	return errors.Join(errs...)
}
