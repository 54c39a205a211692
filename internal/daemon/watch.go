package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/tool"
)

// settle is how long files must not change before they are read: editors and
// package managers write a file in several steps. Files that never settle are read
// after mostUnsettled all the same: no package may put off what the operator
// changes.
const (
	settle        = 200 * time.Millisecond
	mostUnsettled = 2 * time.Second
)

// watch reloads when it is told to, and when the configuration, a package or an
// approval has changed on disk. Packages are loaded beside it: it goes on to see
// what changes meanwhile.
func (d *daemon) watch() {
	var events chan fsnotify.Event
	var faults chan error
	w, err := fsnotify.NewWatcher()
	if err != nil {
		d.Logger.Warn("files are not watched; SIGHUP reloads", "error", err)
	} else {
		defer w.Close()
		events, faults = w.Events, w.Errors
	}
	watched := d.watchAll(w, nil)
	reload := make(chan struct{}, 1)
	var loading sync.WaitGroup
	defer loading.Wait()
	defer close(reload)
	loading.Go(func() {
		for range reload {
			d.reload(d.asked.Swap(false))
			watched = d.watchAll(w, watched)
		}
	})
	changes := newChanges(d.Retry)
	defer changes.stop()
	changes.note() // what has changed since the start, before it was watched
	for {
		select {
		case <-d.told.Done():
			return
		case <-d.Reload:
			d.asked.Store(true)
		case e := <-events:
			if d.concerns(e) {
				changes.note()
			}
			continue
		case err := <-faults:
			// Events were lost, so anything may have changed.
			d.Logger.Warn("watching files", "error", err)
		case <-changes.settled.C:
		case <-changes.retry.C:
			if d.absent.Load() == 0 {
				continue
			}
		}
		changes.taken()
		d.principals()
		select {
		case reload <- struct{}{}:
		default: // one is to come
		}
	}
}

// changes says when files that change are to be read.
type changes struct {
	settled *time.Timer
	retry   *time.Ticker
	first   time.Time // of the changes that were not read yet; zero: there are none
}

func newChanges(retry time.Duration) *changes {
	c := &changes{settled: time.NewTimer(settle), retry: time.NewTicker(retry)}
	c.settled.Stop()
	return c
}

// note takes a change into account.
func (c *changes) note() {
	if c.first.IsZero() {
		c.first = time.Now()
	}
	c.settled.Reset(min(settle, time.Until(c.first.Add(mostUnsettled))))
}

// taken forgets the changes so far.
func (c *changes) taken() {
	c.first = time.Time{}
	c.settled.Stop()
}

func (c *changes) stop() {
	c.settled.Stop()
	c.retry.Stop()
}

// watchAll watches the folders of all files that matter, and no others any
// more. Folders, because a file that is replaced takes its watch with it.
func (d *daemon) watchAll(w *fsnotify.Watcher, before []string) (watched []string) {
	folders := d.watchedFolders()
	if w == nil {
		return nil
	}
	for _, dir := range folders {
		if slices.Contains(watched, dir) {
			continue
		}
		// A folder that was deleted and made anew lost its watch: add them all again.
		if err := w.Add(dir); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				d.Logger.Warn("folder is not watched; SIGHUP reloads", "folder", dir, "error", err)
			}
			continue
		}
		watched = append(watched, dir)
	}
	for _, dir := range before {
		if !slices.Contains(watched, dir) {
			w.Remove(dir) // one that is gone has no watch
		}
	}
	return watched
}

func (d *daemon) watchedFolders() []string {
	dirs := []string{trust.Folder(d.State)}
	for _, f := range d.Watch {
		dirs = append(dirs, filepath.Dir(f))
	}
	packages := d.packageFolders()
	d.folders.Store(&packages)
	var files []string
	for _, dir := range packages {
		files = append(files, tool.FilesFolders(dir)...)
	}
	d.files.Store(&files)
	return slices.Concat(dirs, packages, files)
}

func (d *daemon) packageFolders() []string {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	var dirs []string
	for _, p := range d.config.Packages {
		dir := p.Source
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// concerns reports whether an event is of a file that matters.
func (d *daemon) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	if dir == trust.Folder(d.State) {
		return filepath.Ext(name) == ".json"
	}
	for _, f := range d.Watch {
		// A mounted ConfigMap is replaced by the link ..data beside the file.
		if f == e.Name || name == "..data" && dir == filepath.Dir(f) {
			return true
		}
	}
	if slices.Contains(*d.files.Load(), dir) {
		return true
	}
	switch filepath.Ext(name) {
	case ".wasm", ".yaml", ".go":
		return slices.Contains(*d.folders.Load(), dir)
	}
	return false
}
