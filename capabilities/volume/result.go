package volume

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Result returns the tree that the call would leave, for who judges it: what is
// read through it is no effect of the call. Errors can also be those of the
// overlay. Stamps have no times of status changes and no digests.
func (o *Overlay) Result() Base { return result{o} }

type result struct{ o *Overlay }

// node returns what is at a path, which passes through no link.
func (r result) node(name string) (*Node, error) {
	if r.o.closed {
		return nil, capabilities.EBADF
	}
	n := r.o.root
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
	st := Stamp{Exists: true, Kind: info.Kind, Mode: info.Mode}
	if info.Kind != Dir {
		st.Size, st.ModTime, st.Inode = info.Size, info.ModTime, info.Inode
	}
	return info, st, nil
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
