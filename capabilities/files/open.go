package files

import (
	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Open opens the file or directory at path, or makes the file when the intent
// says so. Close the handle.
//
// A missing file that is to be made is an attempt to create; a file that is to
// be truncated or written is one to truncate or write. A read-only tool that
// opens a file for reading and writing gets EROFS and may go on.
func (h *Handle) Open(path string, in Intent) (*Handle, error) {
	p, err := h.walk(path, in.follows(), in.operation())
	switch {
	case err != nil:
		return nil, err
	case in.Create && in.Directory:
		return nil, capabilities.EINVAL
	case p.Node == nil:
		return h.create(p, in)
	case in.Create && in.Exclusive:
		return nil, capabilities.EEXIST
	}
	switch p.Node.Kind() {
	case volume.File:
		return h.openFile(p.Node, in)
	case volume.Dir:
		return h.openDir(p.Node, in)
	case volume.Symlink:
		return nil, capabilities.ELOOP
	case volume.Special:
		return nil, capabilities.EACCES
	}
	return nil, capabilities.EACCES
}

func (h *Handle) openDir(n *volume.Node, in Intent) (*Handle, error) {
	if in.Write || in.Truncate || in.Create {
		return nil, capabilities.EISDIR
	}
	return h.retain(n, volume.Dir, Intent{Read: true})
}

func (h *Handle) openFile(n *volume.Node, in Intent) (*Handle, error) {
	if in.Directory {
		return nil, capabilities.ENOTDIR
	}
	if a, judged := in.attempt(); judged {
		a.Object = h.volume.object(n)
		if err := h.volume.judge(a); err != nil {
			return nil, err
		}
	}
	f, err := h.retain(n, volume.File, in)
	if err != nil || !in.Truncate {
		return f, err
	}
	if err := h.volume.tree.Truncate(n, 0); err != nil {
		h.volume.tree.Release(n)
		return nil, h.volume.translate(err, capabilities.OpTruncate, h.volume.object(n))
	}
	return f, nil
}

// create makes a missing file when that is asked for.
func (h *Handle) create(p volume.Place, in Intent) (*Handle, error) {
	if !in.Create {
		return nil, capabilities.ENOENT
	}
	if p.Slash {
		return nil, capabilities.EISDIR
	}
	object := h.volume.place(p)
	if err := h.volume.attempt(capabilities.OpCreate, object); err != nil {
		return nil, err
	}
	n, err := h.volume.tree.Create(p)
	if err != nil {
		return nil, h.volume.translate(err, capabilities.OpCreate, object)
	}
	return h.retain(n, volume.File, in)
}

func (h *Handle) retain(n *volume.Node, k volume.Kind, in Intent) (*Handle, error) {
	if err := h.volume.tree.Open(n); err != nil {
		return nil, h.volume.translate(err, capabilities.OpRead, h.volume.object(n))
	}
	return &Handle{volume: h.volume, node: n, kind: k, read: in.Read, write: in.Write, held: true}, nil
}
