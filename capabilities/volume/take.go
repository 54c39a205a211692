package volume

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// take moves what is at a path into the stage. A directory must be empty by now:
// what it still holds is somebody else's.
func (p *publication) take(i int, o operation) error {
	to := p.part(o)
	if p.resumed {
		if done, err := p.taken(i, o, to); done || err != nil {
			return err
		}
	}
	p.disturbed[o.Path] = struct{}{}
	if p.resumed && !o.Moved {
		switch ok, err := p.host.is(o.Path, o.Old); {
		case err != nil:
			return err
		case !ok:
			return p.keep(i, o.Path)
		}
	}
	if o.Old.Kind == Dir {
		if err := p.emptied(o.Path); err != nil {
			return err
		}
	}
	fi, err := p.moveOut(o.Path, to)
	if err != nil || fi == nil {
		return err
	}
	if !fi.IsDir() {
		if p.forward && !o.Moved && !alike(stampOf(fi), o.Old) {
			return p.keep(i, to) // it was replaced at the last moment
		}
		return nil
	}
	more, err := p.disk.hasNames(to)
	switch {
	case err != nil || !more:
		return err
	case p.forward:
		return p.keep(i, to)
	}
	return ErrConflict
}

// emptied makes it durable that a directory has lost its names, and that the stage
// has what was there: a disk may otherwise have the directory taken away first, and
// with it what was to be moved.
func (p *publication) emptied(dir string) error {
	if !p.forward {
		return nil
	}
	if err := p.hold(); err != nil {
		return err
	}
	if err := p.disk.syncDir(dir); err != nil && !isAbsent(errnoOf(err)) {
		return err
	}
	return nil
}

// moveOut moves what is at a path into the stage, and returns what that is. Only
// after a commit may there be nothing.
func (p *publication) moveOut(path, to string) (fs.FileInfo, error) {
	if err := p.move(path, to); err != nil {
		if p.forward && isAbsent(errnoOf(err)) {
			return nil, nil
		}
		return nil, err
	}
	p.undoing(func() error { return p.move(to, path) })
	return p.disk.lstat(to)
}

// unmodified reports whether a file is the one of a stamp, whatever was done to
// its names: that alters the time of its last status change.
func unmodified(is, was Stamp) bool {
	is.Changed, was.Changed, was.Digest = time.Time{}, time.Time{}, ""
	return is.Same(was)
}

// alike is unmodified for what may be a copy.
func alike(is, was Stamp) bool {
	is.Inode, was.Inode = 0, 0
	return unmodified(is, was)
}

// keep moves what somebody else put at a path, or in the stage, to where it stays
// when the change is done.
func (p *publication) keep(i int, path string) error {
	to, err := p.foreign(i)
	if err != nil {
		return err
	}
	p.kept = true
	if err := p.move(path, to); err != nil {
		return err
	}
	return p.hold()
}

// foreign returns a free name for what is not the change's.
func (p *publication) foreign(i int) (string, error) {
	name := partName(p.stage, foreignPart, i)
	for n := 0; ; n++ {
		to := name
		if n > 0 {
			to = fmt.Sprintf("%s-%d", name, n)
		}
		if fi, err := p.disk.exists(to); err != nil || fi == nil {
			return to, err
		}
	}
}

// taken reports whether what was at a path is in the stage already. Where it is
// not, and is not at the path either, somebody else has it, and a mark in the
// stage says so: what comes to the path later is not to be taken.
func (p *publication) taken(i int, o operation, to string) (bool, error) {
	for _, part := range []string{to, partName(p.stage, foreignPart, i)} {
		switch fi, err := p.disk.exists(part); {
		case err != nil:
			return false, err
		case fi != nil && part == to:
			return true, p.unlessMoved(o, fi)
		case fi != nil:
			return true, nil
		}
	}
	st, err := p.at(o.Path)
	switch {
	case err != nil:
		return false, err
	case o.Moved:
		return !origin(st, o.Old), nil
	case st.Exists:
		return false, nil
	}
	f, err := p.disk.create(to)
	if err != nil {
		return false, err
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	return true, p.disk.syncDir(p.stage)
}

// at returns the stamp of what a path leads to through directories only.
func (p *publication) at(path string) (Stamp, error) {
	err := above(path, func(dir string) error {
		fi, err := p.disk.lstat(dir)
		if err == nil && !fi.IsDir() {
			err = capabilities.ENOTDIR
		}
		return err
	})
	if err != nil {
		if isAbsent(errnoOf(err)) {
			return Stamp{}, nil
		}
		return Stamp{}, err
	}
	return p.host.stampNow(path)
}

// origin reports whether a file is the one that is to be moved, whatever somebody
// has written to it since: that goes where the file goes. Where there are no inode
// numbers it must be as it was.
func origin(is, was Stamp) bool {
	if !is.Exists || is.Kind != was.Kind {
		return false
	}
	if was.Inode == 0 {
		return unmodified(is, was)
	}
	return is.Inode == was.Inode
}

// unlessMoved removes what was taken and is still there: it was copied, or it has
// both of its names after a loss of power.
func (p *publication) unlessMoved(o operation, part fs.FileInfo) error {
	st, err := p.at(o.Path)
	if err != nil || !st.Exists {
		return err
	}
	if st.Kind == Dir {
		more, err := p.disk.hasNames(o.Path)
		if err != nil || more || !st.Same(o.Old) {
			return err // it is somebody else's
		}
		return p.disk.remove(o.Path)
	}
	fi, err := p.disk.lstat(o.Path)
	if err != nil {
		return err
	}
	if !os.SameFile(fi, part) {
		if ok, err := p.host.is(o.Path, o.Old); err != nil || !ok {
			return err
		}
	}
	return p.disk.remove(o.Path)
}
