package volume

import (
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Result returns the tree that the call would leave, for who judges it: what is
// read through it is no effect of the call. It shows what a commit would leave,
// times too: what was written as it was before has the time that it had. Errors
// can also be those of the overlay. Stamps have no times of status changes and no
// digests.
func (o *Overlay) Result() Shadow { return result{o} }

// Shadow is a tree that looks like the base on which it lies once a change is
// committed.
type Shadow interface {
	Base
	Lister
	Stepper
}

type result struct{ o *Overlay }

// node returns what is at a path, which passes through no link.
func (r result) node(name string) (*Node, error) {
	if r.o.closed {
		return nil, capabilities.EBADF
	}
	n := &r.o.root
	if name == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if n.kind != Dir {
			return nil, capabilities.ENOTDIR
		}
		child, err := r.o.child(n, part)
		if err != nil {
			return nil, err
		}
		if child == nil {
			return nil, capabilities.ENOENT
		}
		n = child
	}
	return n, nil
}

func (r result) Lstat(name string) (Info, Stamp, error) {
	n, err := r.node(name)
	if err != nil {
		return Info{}, Stamp{}, err
	}
	info, err := r.o.Info(n)
	if err != nil {
		return Info{}, Stamp{}, err
	}
	if info.ModTime, err = r.time(name, info.ModTime); err != nil {
		return Info{}, Stamp{}, err
	}
	st := Stamp{Exists: true, Kind: info.Kind, Mode: info.Mode}
	if info.Kind != Dir {
		st.Size, st.ModTime, st.Inode = info.Size, info.ModTime, info.Inode
	}
	return info, st, nil
}

// time returns the time that a commit would leave at a path, where the overlay
// has one.
func (r result) time(name string, is time.Time) (time.Time, error) {
	d := r.o.delta()
	if d.err != nil {
		return time.Time{}, d.err
	}
	t, changed := d.time(name)
	switch {
	case changed && t.IsZero():
		return is, nil
	case changed:
		return t, nil
	}
	return r.o.notes.time(name), nil
}

// TimeStep is that of the base.
func (r result) TimeStep() time.Duration { return r.o.steps }

// List is ReadDir, and reports whether the base has entries there that cannot be
// shown.
func (r result) List(name string) (list []Entry, hidden bool, err error) {
	n, err := r.node(name)
	if err != nil {
		return nil, false, err
	}
	if list, err = r.ReadDir(name); err != nil || n.base == "" {
		return list, false, err
	}
	l, err := r.o.notes.listing(n.base)
	return list, l.more, err
}

func (r result) ReadDir(name string) ([]Entry, error) {
	n, err := r.node(name)
	if err != nil {
		return nil, err
	}
	if n.kind != Dir {
		return nil, capabilities.ENOTDIR
	}
	list, err := r.o.entries(n)
	for i := range list {
		list[i].Inode = inodeOf(join(name, list[i].Name))
	}
	return list, err
}

func (r result) Readlink(name string) (string, error) {
	n, err := r.node(name)
	if err != nil {
		return "", err
	}
	return r.o.Readlink(n)
}

func (r result) Open(name string) (Content, error) {
	n, err := r.node(name)
	switch {
	case err != nil:
		return nil, err
	case n.kind == Dir:
		return nil, capabilities.EISDIR
	case n.kind != File:
		return nil, capabilities.EACCES
	}
	if err := r.o.Open(n); err != nil {
		return nil, err
	}
	return &resultContent{o: r.o, n: n}, nil
}

// resultContent reads a file of the tree that a call would leave.
type resultContent struct {
	o *Overlay
	n *Node
}

func (c *resultContent) ReadAt(p []byte, off int64) (int, error) {
	if c.n == nil {
		return 0, capabilities.EBADF
	}
	return c.o.readAt(c.n, p, off)
}

func (c *resultContent) Close() error {
	if c.n != nil {
		c.o.Release(c.n)
		c.n = nil
	}
	return nil
}
