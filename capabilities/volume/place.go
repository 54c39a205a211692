package volume

import (
	"io/fs"
	"maps"
	"slices"
	"time"
)

// removals moves into the stage what goes away, and what has to make room for
// something else before it is moved itself.
func (a *application) removals() error {
	for _, s := range a.change.Steps {
		if s.Action != ActRemove {
			continue
		}
		if err := a.discard(s.Path); err != nil {
			return err
		}
	}
	for _, s := range a.change.Steps {
		if (s.Action == ActPut || s.Action == ActLink) && a.sources[s.Path] && a.trash[s.Path] == "" {
			if err := a.discard(s.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// discard moves what is at a path into the stage. A directory must be empty by
// now: what it still holds is somebody else's.
func (a *application) discard(path string) error {
	to := a.part(oldPart)
	a.disturbed[path] = struct{}{}
	if err := a.disk.rename(path, to); err != nil {
		return err
	}
	a.undoing(func() error { return a.disk.rename(to, path) })
	a.trash[path] = to
	a.touch(path)
	fi, err := a.disk.lstat(to)
	if err != nil || !fi.IsDir() {
		return err
	}
	if more, err := a.disk.hasNames(to); err != nil || more {
		if more {
			err = ErrConflict
		}
		return err
	}
	return nil
}

// directories makes the new directories.
func (a *application) directories() error {
	for _, s := range a.change.Steps {
		if s.Action != ActMkdir {
			continue
		}
		if err := a.disk.mkdir(s.Path, 0o700); err != nil {
			return err
		}
		a.undoing(func() error { return a.disk.remove(s.Path) })
		a.touch(s.Path)
		a.made[s.Path] = true
		a.touched[s.Path] = struct{}{}
		if err := a.disk.chmod(s.Path, s.Mode); err != nil {
			return err
		}
	}
	return nil
}

// places puts files and links where they belong.
func (a *application) places() error {
	for i, s := range a.change.Steps {
		from, ok := a.staged[i]
		if !ok {
			continue
		}
		if from == "" {
			from = a.trash[s.Base]
			if err := a.adjust(from, s); err != nil {
				return err
			}
		}
		if err := a.keepOld(s.Path); err != nil {
			return err
		}
		if err := a.disk.rename(from, s.Path); err != nil {
			return err
		}
		a.undoing(func() error { return a.disk.rename(s.Path, from) })
		a.touch(s.Path)
	}
	return nil
}

// keepOld sees to it that what a rename is about to replace can be brought
// back. With a second link the path is never without a file; where there are
// no hard links it is for a moment.
func (a *application) keepOld(path string) error {
	if a.trash[path] != "" {
		return nil
	}
	old, err := a.exists(path)
	switch {
	case err != nil || old == nil:
		return err
	case old.IsDir():
		return ErrConflict
	}
	to := a.part(oldPart)
	a.disturbed[path] = struct{}{}
	if a.disk.link(path, to) != nil {
		return a.discard(path)
	}
	a.undoing(func() error { return a.disk.rename(to, path) })
	return nil
}

// adjust gives a file that is moved unchanged the step's mode and time.
func (a *application) adjust(name string, s Step) error {
	fi, err := a.disk.lstat(name)
	if err != nil || !fi.Mode().IsRegular() || adjusted(fi, s) {
		return err
	}
	if linked(fi) {
		return ErrConflict // it has got another name since it was prepared
	}
	if mode := fi.Mode().Perm(); mode != s.Mode {
		if err := a.disk.chmod(name, s.Mode); err != nil {
			return err
		}
		a.undoing(func() error { return a.disk.chmod(name, mode) })
	}
	if s.ModTime.IsZero() || plainTime(fi.ModTime()).Equal(s.ModTime) {
		return nil
	}
	return a.setTime(name, fi, s.ModTime)
}

// adjusted reports whether a file has a step's mode and time.
func adjusted(fi fs.FileInfo, s Step) bool {
	return fi.Mode().Perm() == s.Mode && (s.ModTime.IsZero() || plainTime(fi.ModTime()).Equal(s.ModTime))
}

func (a *application) setTime(name string, fi fs.FileInfo, t time.Time) error {
	if err := a.disk.chtimes(name, t); err != nil {
		return err
	}
	a.undoing(func() error { return a.disk.chtimes(name, fi.ModTime()) })
	return nil
}

// times sets the times of what is otherwise in place.
func (a *application) times() error {
	for i, s := range a.change.Steps {
		if _, copied := a.staged[i]; copied || s.Action != ActTimes {
			continue
		}
		fi, err := a.disk.lstat(s.Path)
		if err != nil {
			return err
		}
		if k := kindOf(fi.Mode()); (k != File && k != Dir) || linked(fi) {
			return ErrConflict
		}
		a.disturbed[s.Path] = struct{}{}
		if err := a.setTime(s.Path, fi, s.ModTime); err != nil {
			return err
		}
	}
	return nil
}

// sync makes the new names durable.
func (a *application) sync() error {
	for _, dir := range slices.Sorted(maps.Keys(a.touched)) {
		if a.trash[dir] != "" && !a.made[dir] {
			continue // it was removed itself, and a link may be there now
		}
		if err := a.disk.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// rootTimed reports whether the call set the root's time.
func (a *application) rootTimed() bool {
	return slices.ContainsFunc(a.change.Steps, func(s Step) bool { return s.Action == ActTimes && s.Path == "." })
}

// settleRoot repeats the setting of the root's time, which the stage's end
// has changed. Times are no effect: it may fail.
func (a *application) settleRoot() {
	for _, s := range a.change.Steps {
		if s.Action == ActTimes && s.Path == "." {
			_ = a.disk.chtimes(".", s.ModTime)
		}
	}
}
