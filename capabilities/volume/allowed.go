package volume

import (
	"fmt"
	"io/fs"

	"github.com/sandboxd/sandboxd/capabilities"
)

// allowed returns why the host would not let the change be put in place, as far as
// that can be known before it is committed: EACCES, EPERM, EBUSY, EXDEV. After the
// commit it would be in the way of all others.
func (a *application) allowed() error {
	for _, s := range a.change.Steps {
		if err := a.stepAllowed(s); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return nil
}

func (a *application) stepAllowed(s Step) error {
	was := a.guards[s.Path]
	if s.Action == ActTimes {
		if !was.Exists || !s.Was.IsZero() {
			return nil
		}
		fi, err := a.disk.lstat(s.Path)
		if err == nil && !mayTime(fi) {
			err = capabilities.EPERM
		}
		return err
	}
	if err := a.mayLeave(s.Path, was); err != nil || s.Base == "" || s.Base == s.Path {
		return err
	}
	return a.mayLeave(s.Base, a.guards[s.Base])
}

// mayLeave returns nil when names can be made in a path's directory, and what is
// at the path can be moved away.
func (a *application) mayLeave(path string, was Stamp) error {
	dir, _ := split(path)
	if st := a.guards[dir]; dir != "." && (!st.Exists || st.Kind != Dir) {
		return nil // the change makes it
	}
	f, err := a.disk.open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mayChange(f); err != nil {
		return err
	}
	in, err := f.Stat()
	if err != nil || !was.Exists {
		return err
	}
	fi, err := a.disk.lstat(path)
	switch {
	case err != nil:
		return err
	case !mayTake(in, fi):
		return capabilities.EPERM
	case deviceOf(fi) != deviceOf(in):
		return capabilities.EBUSY // another file system begins here
	}
	return a.mayCross(in, was)
}

// mayCross refuses to move a special file between file systems: it cannot be
// copied.
func (a *application) mayCross(in fs.FileInfo, was Stamp) error {
	if was.Kind != Special {
		return nil
	}
	stage, err := a.disk.lstat(a.stage)
	if err == nil && deviceOf(stage) != deviceOf(in) {
		err = capabilities.EXDEV
	}
	return err
}
