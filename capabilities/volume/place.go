package volume

import (
	"fmt"
	"io/fs"
)

// place moves a part of the stage to its path.
func (p *publication) place(i int, o operation) error {
	from := p.part(o)
	if p.forward {
		if fi, err := p.disk.exists(from); err != nil || fi == nil {
			return err // done, or taken away by somebody else
		}
		if err := p.clear(i, o.Path); err != nil {
			return err
		}
	}
	if o.adjusts() {
		if err := p.adjust(from, o); err != nil {
			return err
		}
	}
	free, err := p.makeRoom(i, o, from)
	if err != nil || !free {
		return err
	}
	if err := p.move(from, o.Path); err != nil {
		return err
	}
	p.undoing(func() error { return p.move(o.Path, from) })
	if o.Kind == Dir {
		return p.begun(o.Path)
	}
	return nil
}

// makeRoom sees to it that nothing is lost when a part is moved to its path. It
// reports false when the part is there already.
func (p *publication) makeRoom(i int, o operation, from string) (bool, error) {
	old, err := p.disk.exists(o.Path)
	switch {
	case err != nil || old == nil:
		return err == nil, err
	case !p.forward && (old.IsDir() || !o.Old.Exists):
		return false, ErrConflict
	case !p.forward:
		return true, p.keepOld(i, o.Path)
	}
	ours, err := p.replaced(o, old)
	if err != nil || ours {
		return err == nil, err
	}
	if p.resumed {
		if done, err := p.arrived(o, from, old); done || err != nil {
			return false, err
		}
	}
	return true, p.keep(i, o.Path)
}

// replaced reports whether what is at a path is what the change replaces.
func (p *publication) replaced(o operation, old fs.FileInfo) (bool, error) {
	if !o.Old.Exists || old.IsDir() {
		return false, nil
	}
	if p.resumed {
		return p.host.is(o.Path, o.Old)
	}
	return unmodified(stampOf(old), o.Old), nil
}

// arrived reports whether a part is at its path already, and deletes it then: it
// was copied there, or it is a directory that somebody else has made, too.
func (p *publication) arrived(o operation, from string, old fs.FileInfo) (bool, error) {
	part, err := p.disk.lstat(from)
	if err != nil {
		return false, err
	}
	if old.IsDir() && part.IsDir() {
		had, err := p.host.attributes(from)
		if err == nil {
			err = giveDir(p.disk, o.Path, part.Mode(), had)
		}
		if err == nil {
			err = p.disk.remove(from)
		}
		return true, err
	}
	same, err := p.equal(o.Path, from, old, part)
	if err != nil || !same {
		return false, err
	}
	return true, p.disk.remove(from)
}

// equal reports whether what is at a path is a copy of a part. The time of a link
// cannot be copied.
func (p *publication) equal(path, from string, old, part fs.FileInfo) (bool, error) {
	compare := p.host.digestAlone
	switch a, b := stampOf(old), stampOf(part); {
	case a.Kind != b.Kind:
		return false, nil
	case a.Kind == Symlink:
		compare = p.disk.target
	case !alike(a, b) || a.Kind != File:
		return false, nil
	}
	a, err := compare(path)
	if err != nil {
		return false, err
	}
	b, err := compare(from)
	return a == b, err
}

// keepOld sees to it that what a rename is about to replace can be brought
// back. With a second link the path is never without a file; where there are
// no hard links it is for a moment.
func (p *publication) keepOld(i int, path string) error {
	to := fmt.Sprintf("%s/%sk%d", p.stage, oldPart, i)
	p.disturbed[path] = struct{}{}
	if p.disk.link(path, to) != nil {
		if err := p.move(path, to); err != nil {
			return err
		}
	}
	p.undoing(func() error { return p.move(to, path) })
	return nil
}
