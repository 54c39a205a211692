package volume

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/sandboxd/sandboxd/capabilities"
)

// move renames. Where that is impossible, because a folder in the volume is on
// another file system, it copies and then removes.
func (p *publication) move(from, to string) error {
	err := p.disk.rename(from, to)
	if err == nil || !errors.Is(err, syscall.EXDEV) {
		return err
	}
	fi, err := p.disk.lstat(from)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return p.moveDir(from, to, fi)
	}
	tmp := p.beside(to)
	if err := p.disk.removeAll(tmp); err != nil { // of a process that was killed
		return err
	}
	switch kindOf(fi.Mode()) {
	case File:
		err = p.copyFile(from, tmp)
	case Symlink:
		err = p.disk.relink(from, tmp)
	case Dir, Special:
		err = capabilities.EXDEV // a special file cannot be made
	}
	if err == nil {
		err = p.disk.rename(tmp, to)
	}
	if err != nil {
		_ = p.disk.removeAll(tmp) // it is only a copy
		return err
	}
	return p.leaveBehind(from, to)
}

// leaveBehind removes what was copied, once the copy is durable. Before a commit
// it is one or the other that is there.
func (p *publication) leaveBehind(from, to string) error {
	dir, _ := split(to)
	err := p.disk.syncDir(dir)
	if err == nil {
		err = p.disk.remove(from)
	}
	if err != nil && !p.forward {
		_ = p.disk.remove(to) // it is only a copy
	}
	return err
}

// beside returns a name in the directory of a path for what is about to be moved
// to the path. It is always the same, so that it is found again.
func (p *publication) beside(to string) string {
	dir, _ := split(to)
	if dir == p.stage {
		return partName(p.stage, newPart, 0)
	}
	return join(dir, p.stage+"-copy")
}

// moveDir moves an empty directory.
func (p *publication) moveDir(from, to string, fi fs.FileInfo) error {
	switch more, err := p.disk.hasNames(from); {
	case err != nil:
		return err
	case more:
		return ErrConflict
	}
	had, err := p.host.attributes(from)
	if err != nil {
		return err
	}
	if err := p.disk.mkdir(to, 0o700); err != nil {
		return err
	}
	err = giveDir(p.disk, to, fi.Mode(), had)
	if err == nil {
		err = p.disk.chtimes(to, fi.ModTime())
	}
	if err == nil {
		return p.leaveBehind(from, to)
	}
	if !p.forward {
		_ = p.disk.remove(to) // it is only a copy
	}
	return err
}

// giveDir gives a new directory attributes and a mode, durably.
func giveDir(d disk, name string, mode fs.FileMode, had attributes) error {
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := had.give(d, f); err != nil {
		return err
	}
	if err := d.chmod(name, mode.Perm()|mode&(fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return d.syncDir(name)
}

// copyFile makes a file that is like another, durably.
func (p *publication) copyFile(from, to string) error {
	fi, err := p.disk.lstat(from)
	if err != nil {
		return err
	}
	had, err := p.host.attributes(from)
	if err != nil {
		return err
	}
	src, err := p.host.open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := p.disk.create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := p.disk.hit("copy", from); err != nil {
		return err
	}
	if _, err := io.Copy(f, src); err != nil {
		return err
	}
	if err := had.give(p.disk, f); err != nil {
		return err
	}
	if err := p.disk.chmod(to, fi.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	if err := p.disk.chtimes(to, fi.ModTime()); err != nil {
		return err
	}
	return p.disk.syncFile(f, to)
}

// sync makes what was done durable.
func (p *publication) sync() error {
	dirs := map[string]bool{}
	for _, o := range p.ops {
		dir, _ := split(o.Path)
		switch {
		case o.Do == deedMkdir, o.Do == deedPlace && o.Kind == Dir:
			dirs[dir], dirs[o.Path] = true, true
		case o.Do == deedPlace, o.Do == deedTake:
			dirs[dir] = true
		case o.Kind == Dir:
			dirs[o.Path] = true
		}
	}
	for _, dir := range p.repaired {
		up, _ := split(dir)
		dirs[dir], dirs[up] = true, true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		st, err := p.at(dir)
		if err != nil {
			return err
		}
		if !st.Exists || st.Kind != Dir {
			continue // it was removed, perhaps with what it was in, and a link may be there now
		}
		if err := p.disk.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// above calls f with the directories that a path is in, from the root on.
func above(path string, f func(dir string) error) error {
	for i := range len(path) {
		if path[i] == '/' {
			if err := f(path[:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear sees to it that a path leads through directories only, when somebody else
// may have changed them since the commit.
func (p *publication) clear(i int, path string) error {
	if !p.resumed || !strings.Contains(path, "/") {
		return nil
	}
	return above(path, func(dir string) error {
		fi, err := p.disk.exists(dir)
		if err != nil || (fi != nil && fi.IsDir()) {
			return err
		}
		if fi != nil {
			if err := p.keep(i, dir); err != nil {
				return err
			}
		}
		p.repaired = append(p.repaired, dir)
		if err := p.disk.mkdir(dir, newDirMode); err != nil {
			return err
		}
		return p.begun(dir)
	})
}
