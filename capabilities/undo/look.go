package undo

import (
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// looker looks at a tree that does not change meanwhile. A base must not be asked
// for what is behind a link, where it would find something else.
type looker struct {
	base volume.Base
	dirs map[string]bool // whether a path is a directory
}

func look(b volume.Base) *looker { return &looker{b, map[string]bool{}} }

// dir reports whether a path is a directory, and reached through directories only.
func (l *looker) dir(path string) (bool, error) {
	if is, known := l.dirs[path]; known {
		return is, nil
	}
	s, _, err := l.state(path)
	if err != nil {
		return false, err
	}
	l.dirs[path] = s.Kind == Dir
	return s.Kind == Dir, nil
}

// state returns what there is at a path, without content and digest.
func (l *looker) state(path string) (State, volume.Info, error) {
	if path != "." {
		if in, err := l.dir(dirOf(path)); err != nil || !in {
			return State{Kind: Absent}, volume.Info{}, err
		}
	}
	info, stamp, err := l.base.Lstat(path)
	if isAbsent(err) || (err == nil && !stamp.Exists) {
		return State{Kind: Absent}, info, nil
	}
	if err != nil {
		return State{}, info, err
	}
	switch info.Kind {
	case volume.Dir:
		return State{Kind: Dir, Mode: info.Mode.Perm(), ModTime: plain(info.ModTime)}, info, nil
	case volume.File:
		return State{Kind: File, Mode: info.Mode.Perm(), ModTime: plain(info.ModTime), Size: info.Size}, info, nil
	case volume.Symlink:
		target, err := l.base.Readlink(path)
		return State{Kind: Link, Target: target}, info, err
	case volume.Special:
		return State{Kind: Special}, info, nil
	}
	return State{}, info, fmt.Errorf("%w: kind %d of %q", ErrInvalid, info.Kind, path)
}

func isAbsent(err error) bool {
	return errors.Is(err, capabilities.ENOENT) || errors.Is(err, capabilities.ENOTDIR)
}

func unreadable(err error) bool {
	return errors.Is(err, capabilities.EACCES) || errors.Is(err, capabilities.EPERM)
}
