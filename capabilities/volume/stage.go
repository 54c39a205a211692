package volume

import (
	"context"
	"io"
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
		case ActRemove, ActMkdir, ActTimes:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *application) prepareLink(i int, s Step) error {
	if s.Base != "" && a.vacated[s.Base] && s.Base != s.Path {
		a.sources[s.Base] = true
		a.staged[i] = ""
		return nil
	}
	if s.Target == "" {
		return capabilities.EINVAL
	}
	a.staged[i] = a.part()
	return a.disk.symlink(s.Target, a.staged[i])
}

func (a *application) prepareFile(i int, s Step) error {
	moved, err := a.movedWhole(s)
	if err != nil {
		return err
	}
	if moved {
		a.sources[s.Base] = true
		a.staged[i] = ""
		return nil
	}
	a.staged[i] = a.part()
	f, err := a.disk.create(a.staged[i])
	if err != nil {
		return err
	}
	err = a.fill(f, s, a.staged[i])
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// movedWhole reports whether the step moves a file of the base as it is.
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
		return fi.Size() == s.Size, nil
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
	if err := a.owner(f, s.Path); err != nil {
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
	if err := a.disk.hit("sync", name); err != nil {
		return err
	}
	return f.Sync()
}

// owner gives a new file the owner of the one that it replaces. Only a path
// that the call saw is looked at: others may lead through what goes away.
func (a *application) owner(f *os.File, path string) error {
	if !a.known[path] {
		return nil
	}
	old, err := a.disk.lstat(path)
	if err != nil {
		return err
	}
	keepOwner(f, old)
	return nil
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
