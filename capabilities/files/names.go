package files

import (
	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Mkdir makes a directory. EEXIST when the name is taken.
func (h *Handle) Mkdir(path string) error {
	p, err := h.walk(path, false, capabilities.OpMkdir)
	switch {
	case err != nil:
		return err
	case p.Node != nil:
		return capabilities.EEXIST
	}
	return h.apply(capabilities.OpMkdir, p, h.volume.tree.Mkdir)
}

// Rmdir removes an empty directory.
func (h *Handle) Rmdir(path string) error {
	p, err := h.find(path, false, capabilities.OpRmdir)
	if err != nil {
		return err
	}
	if err := h.removable(p); err != nil {
		return err
	}
	return h.apply(capabilities.OpRmdir, p, h.volume.tree.Remove)
}

// removable says why there is no directory to remove.
func (h *Handle) removable(p volume.Place) error {
	switch {
	case p.Node.Kind() != volume.Dir:
		return capabilities.ENOTDIR
	case p.Node == h.volume.tree.Root():
		return capabilities.EBUSY
	case dots(p):
		return capabilities.EINVAL
	}
	return h.empty(p.Node)
}

// empty returns ENOTEMPTY unless the directory has no names.
func (h *Handle) empty(n *volume.Node) error {
	empty, err := h.volume.tree.Empty(n)
	switch {
	case err != nil:
		return h.volume.translate(err, capabilities.OpRead, h.volume.object(n))
	case !empty:
		return capabilities.ENOTEMPTY
	}
	return nil
}

// Unlink removes a file or link. EISDIR for a directory.
func (h *Handle) Unlink(path string) error {
	p, err := h.find(path, false, capabilities.OpUnlink)
	if err != nil {
		return err
	}
	if p.Node.Kind() == volume.Dir {
		return capabilities.EISDIR
	}
	return h.apply(capabilities.OpUnlink, p, h.volume.tree.Remove)
}

// apply has a change of one name judged, and makes it.
func (h *Handle) apply(op capabilities.Operation, p volume.Place, change func(volume.Place) error) error {
	object := h.volume.place(p)
	if err := h.volume.attempt(op, object); err != nil {
		return err
	}
	if err := change(p); err != nil {
		return h.volume.translate(err, op, object)
	}
	return nil
}

// dots reports whether a path ends in "." or "..", which names no entry: POSIX
// rmdir and rename refuse it.
func dots(p volume.Place) bool {
	return p.Name == "." || p.Name == ".."
}
