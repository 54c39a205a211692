package files

import (
	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// ReadDir returns the names in the directory as they are now: ".", "..", and
// the others sorted. ENOTDIR for a file.
func (h *Handle) ReadDir() ([]volume.Entry, error) {
	if err := h.live(capabilities.OpRead); err != nil {
		return nil, err
	}
	if h.kind != volume.Dir {
		return nil, capabilities.ENOTDIR
	}
	self, err := h.info(h.node)
	if err != nil {
		return nil, err
	}
	names, err := h.volume.tree.List(h.node)
	if err != nil {
		return nil, h.volume.translate(err, capabilities.OpRead, h.object())
	}
	all := make([]volume.Entry, 0, len(names)+2)
	all = append(all,
		volume.Entry{Name: ".", Kind: volume.Dir, Inode: self.Inode},
		volume.Entry{Name: "..", Kind: volume.Dir, Inode: h.above(self.Inode)})
	return append(all, names...), nil
}

// above returns the inode of the parent directory: of the root, and of a
// directory that was removed, the directory's own.
func (h *Handle) above(own uint64) uint64 {
	if h.node == h.volume.tree.Root() {
		return own
	}
	p, err := h.volume.tree.Walk(h.node, "..", false)
	if err != nil || p.Node == nil {
		return own
	}
	i, err := h.volume.tree.Info(p.Node)
	if err != nil {
		return own
	}
	return i.Inode
}
