package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// publication puts a staged change in place, operation by operation. There are
// two ways. Before a commit, what goes wrong is taken back, and what somebody else
// changed is a conflict. Forward, after the commit, nothing is taken back: what
// somebody else changed is kept in the stage, and an error leaves the rest for
// later.
type publication struct {
	host    *HostDir
	disk    disk
	stage   string
	ops     []operation
	forward bool
	resumed bool // some operations may have been done, by a process that was killed

	undo      []func() error
	before    map[string]time.Time // of directories whose names change
	disturbed map[string]struct{}  // files whose times an operation and its undo change
	repaired  []string             // directories that had to be made again
	kept      bool                 // something of somebody else is in the stage
}

func newPublication(h *HostDir, stage string) *publication {
	return &publication{
		host: h, disk: h.disk, stage: stage,
		before: map[string]time.Time{}, disturbed: map[string]struct{}{},
	}
}

// run does all operations, durably. When one fails, what was done before is taken
// back, unless the change is committed.
func (p *publication) run() error {
	p.host.publishing.Lock()
	defer p.host.publishing.Unlock()
	err := p.all()
	if err == nil || p.forward {
		return err
	}
	if undo := p.revert(); undo != nil {
		return fmt.Errorf("%w: %s; undo: %s; old files are in %s", ErrTorn, err.Error(), undo.Error(), p.stage)
	}
	return err
}

func (p *publication) all() error {
	moved := false
	for i, o := range p.ops {
		if moved && o.Do != deedTake {
			if err := p.hold(); err != nil {
				return err
			}
			moved = false
		}
		if err := p.do(i, o); err != nil {
			return err
		}
		moved = moved || (o.Do == deedTake && o.Moved)
	}
	return p.sync()
}

// hold makes it durable that the stage has what was moved there: before it is
// durable that it is nowhere else.
func (p *publication) hold() error {
	if !p.forward {
		return nil
	}
	return p.disk.syncDir(p.stage)
}

func (p *publication) do(i int, o operation) error {
	switch o.Do {
	case deedTake:
		return p.take(i, o)
	case deedMkdir:
		return p.mkdir(i, o)
	case deedPlace:
		return p.place(i, o)
	case deedTimes:
		return p.times(o)
	}
	return capabilities.EINVAL
}

// unpublish takes back what was put in place.
func (p *publication) unpublish() error {
	p.host.publishing.Lock()
	defer p.host.publishing.Unlock()
	if undo := p.revert(); undo != nil {
		return fmt.Errorf("%w: undo: %s; old files are in %s", ErrTorn, undo.Error(), p.stage)
	}
	return nil
}

// revert takes back what was done, last operation first. It goes on after an
// error and returns all of them.
func (p *publication) revert() error {
	var errs []error
	for i := len(p.undo) - 1; i >= 0; i-- {
		errs = append(errs, p.undo[i]())
	}
	p.undo = nil
	for dir, at := range p.before {
		_ = p.disk.chtimes(dir, at) // no effect of the change, so none of its undo
	}
	return errors.Join(errs...)
}

func (p *publication) undoing(f func() error) {
	if !p.forward {
		p.undo = append(p.undo, f)
	}
}

// part returns where an operation's part is in the stage.
func (p *publication) part(o operation) string {
	prefix := oldPart
	switch {
	case o.Do == deedPlace && !o.Moved:
		prefix = newPart
	case p.forward && o.Moved:
		prefix = movedPart
	case p.forward:
		prefix = removedPart
	}
	return partName(p.stage, prefix, o.Part)
}

// begun makes a new directory durable before anything is put into it.
func (p *publication) begun(path string) error {
	if !p.forward {
		return nil
	}
	dir, _ := split(path)
	return p.disk.syncDir(dir)
}

// mkdir makes a directory.
func (p *publication) mkdir(i int, o operation) error {
	if err := p.clear(i, o.Path); err != nil {
		return err
	}
	var there fs.FileInfo
	if p.forward {
		var err error
		if there, err = p.disk.exists(o.Path); err != nil {
			return err
		}
		if there != nil && !there.IsDir() {
			if err := p.keep(i, o.Path); err != nil {
				return err
			}
			there = nil
		}
	}
	if there == nil {
		if err := p.disk.mkdir(o.Path, 0o700); err != nil {
			return err
		}
		p.undoing(func() error { return p.disk.remove(o.Path) })
	}
	fi, err := p.disk.lstat(o.Path)
	if err != nil {
		return err
	}
	// What it inherits stays: that its own entries inherit, too.
	if err := p.disk.chmod(o.Path, o.Mode|fi.Mode()&(fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return p.begun(o.Path)
}

// adjust gives a file that is moved unchanged the change's mode and time.
func (p *publication) adjust(name string, o operation) error {
	fi, err := p.disk.lstat(name)
	if err != nil || !fi.Mode().IsRegular() || adjusted(fi, o.Mode, o.ModTime) {
		return err
	}
	if linked(fi) { // it has got another name since it was prepared
		if err := p.unshare(name); err != nil {
			return err
		}
	}
	if mode := fi.Mode().Perm(); mode != o.Mode {
		if err := p.disk.chmod(name, o.Mode); err != nil {
			return err
		}
		p.undoing(func() error { return p.disk.chmod(name, mode) })
	}
	if !o.ModTime.IsZero() && !plainTime(fi.ModTime()).Equal(o.ModTime) {
		return p.setTime(name, fi, o.ModTime)
	}
	return p.disk.syncTimes(name)
}

// adjusted reports whether a file has a mode and a time.
func adjusted(fi fs.FileInfo, mode fs.FileMode, at time.Time) bool {
	return fi.Mode().Perm() == mode && (at.IsZero() || plainTime(fi.ModTime()).Equal(at))
}

func (p *publication) setTime(name string, fi fs.FileInfo, t time.Time) error {
	if err := p.disk.chtimes(name, t); err != nil {
		return err
	}
	p.undoing(func() error { return p.disk.chtimes(name, fi.ModTime()) })
	return p.disk.syncTimes(name)
}

// unshare makes a file one of its own that has other names, perhaps outside the
// volume: their mode and times are not the change's to set.
func (p *publication) unshare(name string) error {
	if !p.forward {
		return ErrConflict
	}
	copied := partName(p.stage, newPart, 0)
	if err := p.disk.removeAll(copied); err != nil {
		return err
	}
	if err := p.copyFile(name, copied); err != nil {
		return err
	}
	return p.move(copied, name)
}

// times sets the time of what is otherwise in place.
func (p *publication) times(o operation) error {
	fi, err := p.disk.exists(o.Path)
	switch {
	case err != nil:
		return err
	case fi == nil || kindOf(fi.Mode()) != o.Kind:
		if p.forward {
			return nil
		}
		return ErrConflict
	case o.Kind == Dir:
		return p.dirTime(o)
	case p.resumed && !untimed(stampOf(fi), o):
		return nil // somebody else has changed it since
	}
	if linked(fi) {
		if err := p.unshare(o.Path); err != nil {
			return err
		}
	}
	p.disturbed[o.Path] = struct{}{}
	return p.setTime(o.Path, fi, o.ModTime)
}

// untimed reports whether a file is what it was when its time was to be set, with
// that time or the one it had.
func untimed(is Stamp, o operation) bool {
	was := o.Old
	if is.ModTime.Equal(o.ModTime) {
		was.ModTime = o.ModTime
	}
	return unmodified(is, was)
}

func (p *publication) dirTime(o operation) error {
	err := p.disk.chtimes(o.Path, o.ModTime)
	if e := errnoOf(err); o.Follows && (e == capabilities.EPERM || e == capabilities.EACCES) {
		return nil
	}
	return err
}
