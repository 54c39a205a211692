package volume

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/sandboxd/sandboxd/capabilities"
)

// prepare makes in the stage what the steps put in place. Files that are moved
// unchanged from a path that goes away are left for the places phase.
func (a *application) prepare(ctx context.Context) error {
	for i, s := range a.change.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch s.Action {
		case ActPut:
			err = a.prepareFile(i, s)
		case ActLink:
			err = a.prepareLink(i, s)
		case ActTimes:
			err = a.prepareTimes(i, s)
		case ActMkdir:
			err = a.prepareDir(i, s)
		case ActRemove:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareLink refuses a link that is not what the step says it is: who looked
// at the change was told that. One that is put back is made in the stage.
func (a *application) prepareLink(i int, s Step) error {
	if s.Base == "" {
		a.staged[i] = a.next()
		return a.disk.symlink(s.Target, a.newName(a.staged[i]))
	}
	target, err := a.host.Readlink(s.Base)
	switch {
	case err != nil:
		return err
	case target != s.Target || !a.vacated[s.Base]:
		return capabilities.EINVAL
	}
	a.sources[s.Base] = true
	a.staged[i] = 0
	return nil
}

// prepareDir makes a directory that is moved. What was in it is moved by itself.
func (a *application) prepareDir(i int, s Step) error {
	if s.Base == "" {
		return nil
	}
	fi, err := a.disk.lstat(s.Base)
	if err != nil {
		return err
	}
	had, err := a.host.attributes(s.Base)
	if err != nil {
		return err
	}
	a.staged[i] = a.next()
	name := a.newName(a.staged[i])
	if err := a.disk.mkdir(name, 0o700); err != nil {
		return err
	}
	return giveDir(a.disk, name, s.Mode|fi.Mode()&(fs.ModeSetgid|fs.ModeSticky), had)
}

func (a *application) prepareFile(i int, s Step) error {
	moved, err := a.movedWhole(s)
	if err != nil {
		return err
	}
	if moved {
		a.sources[s.Base] = true
		a.staged[i] = 0
		return nil
	}
	return a.stageFile(i, s)
}

// prepareTimes makes a copy of a file that has other names, perhaps outside the
// volume: their times are not the call's to set.
func (a *application) prepareTimes(i int, s Step) error {
	if !a.known(s.Path) || a.vacated[s.Path] {
		return nil
	}
	fi, err := a.disk.lstat(s.Path)
	if err != nil || !linked(fi) {
		return err
	}
	s.Base, s.Keep, s.Size, s.Mode = s.Path, fi.Size(), fi.Size(), fi.Mode().Perm()
	return a.stageFile(i, s)
}

// stageFile makes a step's file.
func (a *application) stageFile(i int, s Step) error {
	a.staged[i] = a.next()
	name := a.newName(a.staged[i])
	f, err := a.disk.create(name)
	if err != nil {
		return err
	}
	err = a.fill(f, s, name)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// movedWhole reports whether the step moves a file of the base as it is. One
// that has other names, perhaps outside the volume, or is not the user's, is copied
// when its mode or time would change with it, and one that replaces a file when it
// has not that one's attributes.
func (a *application) movedWhole(s Step) (bool, error) {
	if s.Base == "" || s.Base == s.Path || !a.vacated[s.Base] || len(s.Extents) > 0 || s.Keep != s.Size {
		return false, nil
	}
	fi, err := a.disk.lstat(s.Base)
	if err != nil {
		return false, err
	}
	switch kindOf(fi.Mode()) {
	case File:
		if fi.Size() != s.Size || ((linked(fi) || !mayTime(fi)) && !adjusted(fi, s.Mode, s.ModTime)) {
			return false, nil
		}
		return a.sameAttributes(s)
	case Special:
		return true, nil
	case Dir, Symlink:
	}
	return false, ErrConflict
}

// fill writes the content, owner, mode and time of a step's file, durably.
func (a *application) fill(f *os.File, s Step, name string) error {
	if err := a.copyBase(f, s); err != nil {
		return err
	}
	for _, e := range s.Extents {
		if err := a.disk.hit("write", name); err != nil {
			return err
		}
		if _, err := f.WriteAt(e.Data, e.Offset); err != nil {
			return err
		}
	}
	if err := a.disk.hit("truncate", name); err != nil {
		return err
	}
	if err := f.Truncate(s.Size); err != nil {
		return err
	}
	if err := a.attributes(f, s); err != nil {
		return err
	}
	if err := a.disk.chmod(name, s.Mode); err != nil {
		return err
	}
	if !s.ModTime.IsZero() {
		if err := a.disk.chtimes(name, s.ModTime); err != nil {
			return err
		}
	}
	return a.disk.syncFile(f, name)
}

// attributes gives a new file those of the one that it replaces or, where there is
// none, of the one that it was. Only a path that the call saw is looked at: others
// may lead through what goes away.
func (a *application) attributes(f *os.File, s Step) error {
	from := s.Path
	if !a.known(from) {
		from = s.Base
	}
	if from == "" {
		return nil
	}
	had, err := a.host.attributes(from)
	if err != nil {
		return err
	}
	return had.give(a.disk, f)
}

// sameAttributes reports whether a step's file has the attributes that it is to
// have at its path.
func (a *application) sameAttributes(s Step) (bool, error) {
	if !a.known(s.Path) {
		return true, nil
	}
	has, err := a.host.attributes(s.Base)
	if err != nil {
		return false, err
	}
	due, err := a.host.attributes(s.Path)
	return err == nil && has.equal(due), err
}

// copyBase copies what a step keeps of a base file.
func (a *application) copyBase(f *os.File, s Step) error {
	if s.Keep == 0 {
		return nil
	}
	if err := a.disk.hit("open", s.Base); err != nil {
		return err
	}
	src, err := a.host.open(s.Base)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := a.disk.hit("copy", s.Base); err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(src, s.Keep))
	if err == nil && n < s.Keep {
		err = ErrConflict
	}
	return err
}
