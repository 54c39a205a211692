package undo

import (
	"io/fs"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// The modes that an overlay gives to what it makes.
const (
	newFileMode = 0o644
	newDirMode  = 0o755
)

// What an overlay does for the host alone, where it does.
type (
	chmoder interface {
		SetMode(n *volume.Node, mode fs.FileMode) error
	}
	linker interface {
		Symlink(p volume.Place, target string) error
	}
)

// What cannot be put back is lost when the record is made, not when it is needed.
var (
	_, canChmod = any((*volume.Overlay)(nil)).(chmoder)
	_, canLink  = any((*volume.Overlay)(nil)).(linker)
)

func setMode(o *volume.Overlay, n *volume.Node, mode fs.FileMode) error {
	if c, ok := any(o).(chmoder); ok {
		return c.SetMode(n, mode)
	}
	return capabilities.ENOTSUP
}

func makeLink(o *volume.Overlay, p volume.Place, target string) error {
	if l, ok := any(o).(linker); ok {
		return l.Symlink(p, target)
	}
	return capabilities.ENOTSUP
}
