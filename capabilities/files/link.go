package files

import (
	gopath "path"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Readlink returns the target of a symbolic link; EINVAL for anything else. A
// target outside the volume is not shown: EACCES and a denial.
func (h *Handle) Readlink(path string) (string, error) {
	p, err := h.find(path, false, capabilities.OpRead)
	switch {
	case err != nil:
		return "", err
	case p.Node.Kind() != volume.Symlink:
		return "", capabilities.EINVAL
	}
	target, err := h.volume.tree.Readlink(p.Node)
	if err != nil {
		return "", h.volume.translate(err, capabilities.OpRead, h.volume.object(p.Node))
	}
	if h.leaves(p, target) {
		return "", h.volume.escape(capabilities.OpRead, h.volume.object(p.Node))
	}
	return target, nil
}

// leaves reports whether a link's target is outside the volume: as a text, or
// through the links on its way.
func (h *Handle) leaves(p volume.Place, target string) bool {
	if strings.HasPrefix(target, "/") {
		return true
	}
	dir := h.volume.tree.Path(p.Parent)
	if clean := gopath.Join(dir, target); clean == ".." || strings.HasPrefix(clean, "../") {
		return true
	}
	_, err := h.volume.tree.Walk(p.Parent, target, false)
	return err != nil && isEscape(err)
}

// Link is refused to every tool, whatever it claims, in scratch too: EPERM and
// a denial.
func (h *Handle) Link(path string, to *Handle, newPath string) error {
	if h.volume.Sealed() {
		return h.volume.refuse(capabilities.OpCreate, h.asked(path))
	}
	return to.link(newPath)
}

// Symlink is refused as [Handle.Link] is. The target is not looked at.
func (h *Handle) Symlink(_, newPath string) error {
	return h.link(newPath)
}

func (h *Handle) link(path string) error {
	if h.volume.Sealed() {
		return h.volume.refuse(capabilities.OpCreate, h.asked(path))
	}
	return h.volume.ledger.Attempt(capabilities.Attempt{
		Operation: capabilities.OpCreate, Object: h.asked(path), Volume: h.volume.name, Link: true,
	})
}
