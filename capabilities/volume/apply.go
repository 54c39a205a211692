package volume

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
)

// Apply makes the change durable as a whole or not at all. It returns
// [ErrConflict] when a guard of the change no longer holds, EINVAL for a change
// that no overlay makes, and the errors of the file system by their name.
//
// New contents are prepared in a folder in the volume's root, whose name the
// host reserves; what is replaced or removed is moved there, and moved back
// when anything fails. A process that is killed in between leaves that folder,
// with the old files in it: what was not yet moved back has to be by hand.
// Owners are kept as far as the host allows; extended attributes of replaced
// files, and their other hard links, are not.
func (h *HostDir) Apply(ctx context.Context, c *Change) error {
	if err := c.valid(); err != nil {
		return fmt.Errorf("volume change: %w", err)
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := h.holds(ctx, c); err != nil || c.Empty() {
		return err
	}
	h.sweep()
	if err := h.apply(ctx, c); err != nil {
		return fmt.Errorf("volume apply: %w", err)
	}
	return nil
}

// apply does the steps of a change whose guards hold.
func (h *HostDir) apply(ctx context.Context, c *Change) error {
	stage := reservedPrefix + rand.Text()
	if err := h.disk.mkdir(stage, 0o700); err != nil {
		return named(err)
	}
	a := newApplication(h, c, stage)
	if err := a.run(ctx); err != nil {
		if undone := a.revert(); undone != nil {
			return errors.Join(named(err), fmt.Errorf("undo, old files are in %s: %w", stage, undone))
		}
		h.discard(stage)
		return named(err)
	}
	h.discard(stage)
	a.settleRoot()
	return nil
}

// discard deletes a stage folder. The change is done or undone, so this is no
// longer a reason to fail; the next change tries again.
func (h *HostDir) discard(stage string) {
	for range 2 {
		if err := h.disk.removeAll(stage); err == nil {
			return
		}
	}
	h.stale = append(h.stale, stage)
}

// sweep deletes stage folders that could not be deleted before.
func (h *HostDir) sweep() {
	stale := h.stale
	h.stale = nil
	for _, stage := range stale {
		h.discard(stage)
	}
}

// application is a change on its way into a folder.
type application struct {
	host   *HostDir
	disk   disk
	change *Change
	stage  string
	parts  int // names used in the stage

	known   map[string]bool     // files that the call saw
	vacated map[string]bool     // paths whose file goes away
	sources map[string]bool     // those of them that are moved elsewhere
	staged  map[int]string      // by step: the prepared file, or empty for one that is moved
	trash   map[string]string   // by path: where what was there is now
	made    map[string]bool     // new directories
	touched map[string]struct{} // directories whose names changed
	undo    []func() error
}

func newApplication(h *HostDir, c *Change, stage string) *application {
	a := &application{
		host: h, disk: h.disk, change: c, stage: stage,
		known: map[string]bool{}, vacated: map[string]bool{}, sources: map[string]bool{}, staged: map[int]string{},
		trash: map[string]string{}, made: map[string]bool{}, touched: map[string]struct{}{},
	}
	for _, g := range c.Guards {
		a.known[g.Path] = g.Stamp.Exists && g.Stamp.Kind == File
	}
	for _, s := range c.Steps {
		switch s.Action {
		case ActRemove:
			a.vacated[s.Path] = true
		case ActPut, ActLink:
			a.vacated[s.Path] = a.vacated[s.Path] || s.Base != s.Path
		case ActMkdir, ActTimes:
		}
	}
	return a
}

// run does all that can be undone. Until the guards were checked a second
// time, only the stage is written to.
func (a *application) run(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	if err := a.recheck(); err != nil {
		return err
	}
	for _, do := range []func() error{a.removals, a.directories, a.places, a.times, a.sync} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// recheck checks the guards of the paths that are about to change: preparing
// may have taken long.
func (a *application) recheck() error {
	paths := map[string]struct{}{}
	for _, s := range a.change.Steps {
		paths[s.Path] = struct{}{}
		paths[s.Base] = struct{}{}
	}
	for _, g := range a.change.Guards {
		if _, ok := paths[g.Path]; !ok {
			continue
		}
		if err := a.host.unchanged(g); err != nil {
			return err
		}
	}
	return nil
}

// revert takes back what was done, last step first. It goes on after an error
// and returns all of them.
func (a *application) revert() error {
	var errs []error
	for i := len(a.undo) - 1; i >= 0; i-- {
		errs = append(errs, a.undo[i]())
	}
	return errors.Join(errs...)
}

func (a *application) undoing(f func() error) { a.undo = append(a.undo, f) }

// part returns a new name in the stage.
func (a *application) part() string {
	a.parts++
	return fmt.Sprintf("%s/%d", a.stage, a.parts)
}

// touch notes that a name in a path's directory changes.
func (a *application) touch(path string) {
	dir, _ := split(path)
	a.touched[dir] = struct{}{}
}

// exists returns what is at a path, nil for nothing.
func (a *application) exists(path string) (fs.FileInfo, error) {
	fi, err := a.disk.lstat(path)
	if err != nil && isAbsent(errnoOf(err)) {
		return nil, nil
	}
	return fi, err
}
