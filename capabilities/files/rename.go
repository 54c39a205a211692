package files

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Rename moves the file at path to the new path below another directory of the
// same volume, replacing what is there as POSIX rename does. EXDEV for another
// volume; renaming a file onto itself succeeds and is no attempt.
func (h *Handle) Rename(path string, to *Handle, newPath string) error {
	switch {
	case h.volume.barred():
		return h.volume.refuse(capabilities.OpRename, h.asked(path))
	case to.volume.barred():
		return to.volume.refuse(capabilities.OpRename, to.asked(newPath))
	case h.volume != to.volume:
		return capabilities.EXDEV
	}
	p, err := h.find(path, false, capabilities.OpRename)
	if err != nil {
		return err
	}
	q, err := to.walk(newPath, false, capabilities.OpRename)
	if err != nil {
		return err
	}
	if dots(p) || dots(q) {
		return capabilities.EINVAL
	}
	if p.Node == q.Node {
		return nil
	}
	if err := h.movable(p, q); err != nil {
		return err
	}
	return h.apply(capabilities.OpRename, p, func(p volume.Place) error {
		return h.volume.tree.Rename(p, q)
	})
}

// movable says why a rename can have no effect.
func (h *Handle) movable(p, q volume.Place) error {
	tree, dir := h.volume.tree, p.Node.Kind() == volume.Dir
	switch {
	case p.Node == tree.Root() || q.Node == tree.Root():
		return capabilities.EBUSY
	case dir && within(tree.Path(q.Parent), tree.Path(p.Node)):
		return capabilities.EINVAL
	case q.Node == nil && q.Slash && !dir:
		return capabilities.ENOTDIR
	case q.Node == nil:
		return nil
	case dir && q.Node.Kind() != volume.Dir:
		return capabilities.ENOTDIR
	case dir:
		return h.empty(q.Node)
	case q.Node.Kind() == volume.Dir:
		return capabilities.EISDIR
	}
	return nil
}

// within reports whether a path is the directory or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
