package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Apply makes the change durable as a whole or not at all. It returns
// [ErrConflict] when a guard of the change no longer holds, EINVAL for a change
// that no overlay makes, [ErrTorn] when a change that failed could not be taken
// back, and the errors of the file system by their name.
//
// New contents are prepared in a stage, a folder in the volume's root whose name
// the host reserves; what is replaced or removed is moved there, and moved back
// when anything fails. Owners are kept as far as the host allows; extended
// attributes of replaced files are not. A file with other names (hard links) is
// replaced and not changed, so that they go on leading to the old one; where the
// system does not tell of them (Windows), setting the times of a file, or moving
// it over another, shows through them too.
func (h *HostDir) Apply(ctx context.Context, c *Change) error {
	s, err := h.Stage(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Lock(ctx); err != nil {
		return err
	}
	return s.Publish(ctx)
}

// application is a change on its way into a folder.
type application struct {
	host   *HostDir
	disk   disk
	change *Change
	stage  string
	parts  int // names used in the stage

	known     map[string]bool     // files that the call saw
	vacated   map[string]bool     // paths whose file goes away
	sources   map[string]bool     // those of them that are moved elsewhere
	staged    map[int]string      // by step: the prepared file, or empty for one that is moved
	trash     map[string]string   // by path: where what was there is now
	made      map[string]bool     // new directories
	touched   map[string]struct{} // directories whose names changed
	disturbed map[string]struct{} // files whose times a step and its undo change
	undo      []func() error
}

func newApplication(h *HostDir, c *Change, stage string) *application {
	a := &application{
		host: h, disk: h.disk, change: c, stage: stage,
		known: map[string]bool{}, vacated: map[string]bool{}, sources: map[string]bool{}, staged: map[int]string{},
		trash: map[string]string{}, made: map[string]bool{}, touched: map[string]struct{}{}, disturbed: map[string]struct{}{},
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

// publish puts in place what was prepared, or takes back what it did of that.
func (a *application) publish() error {
	a.host.publishing.Lock()
	defer a.host.publishing.Unlock()
	for _, do := range []func() error{a.removals, a.directories, a.places, a.times, a.sync} {
		if err := do(); err != nil {
			return a.takeBack(err)
		}
	}
	return nil
}

// unpublish takes back what was put in place.
func (a *application) unpublish() error {
	a.host.publishing.Lock()
	defer a.host.publishing.Unlock()
	if undo := a.revert(); undo != nil {
		return fmt.Errorf("%w: undo: %s; old files are in %s", ErrTorn, undo.Error(), a.stage)
	}
	return nil
}

// takeBack returns the cause, or what became of it when undoing failed too.
func (a *application) takeBack(cause error) error {
	undo := a.revert()
	if undo == nil {
		return cause
	}
	return fmt.Errorf("%w: %s; undo: %s; old files are in %s", ErrTorn, cause.Error(), undo.Error(), a.stage)
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

// part returns a new name in the stage, for new contents or for old files.
func (a *application) part(prefix string) string {
	a.parts++
	return fmt.Sprintf("%s/%s%d", a.stage, prefix, a.parts)
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
