package files

import (
	"path"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Handle is an open file or directory. It stays with the file when that is
// renamed or removed. It is not safe for concurrent use, as guests are single
// threaded.
type Handle struct {
	volume *Volume
	node   *volume.Node // nil: the root, which was not touched yet
	kind   volume.Kind
	read   bool
	write  bool
	held   bool // the node is retained
	closed bool
}

// Volume returns the volume that the handle belongs to.
func (h *Handle) Volume() *Volume { return h.volume }

// Kind returns [volume.File] or [volume.Dir].
func (h *Handle) Kind() volume.Kind { return h.kind }

// Readable reports whether the handle was opened for reading.
func (h *Handle) Readable() bool { return h.read }

// Writable reports whether the handle was opened for writing.
func (h *Handle) Writable() bool { return h.write }

// Close releases the file. A second Close is EBADF.
func (h *Handle) Close() error {
	if h.closed {
		return capabilities.EBADF
	}
	h.closed = true
	if h.held {
		h.volume.tree.Release(h.node)
	}
	return nil
}

// Sync has no effect: what a call writes becomes durable when it commits.
func (h *Handle) Sync() error {
	return h.live(capabilities.OpRead)
}

// live refuses operations on the handle itself when it is closed or its
// volume barred.
func (h *Handle) live(op capabilities.Operation) error {
	switch {
	case h.closed:
		return capabilities.EBADF
	case h.volume.barred():
		return h.volume.refuse(op, h.object())
	}
	h.reach()
	return nil
}

// reach finds the root's node when it is first touched.
func (h *Handle) reach() {
	if h.node != nil {
		return
	}
	if h.volume.tree == nil {
		h.volume.tree = h.volume.from.Overlay()
	}
	h.node = h.volume.tree.Root()
}

// object returns the guest path of the handle's file.
func (h *Handle) object() string {
	if h.node == nil {
		return h.volume.mount
	}
	return h.volume.object(h.node)
}

// asked returns the guest path that a path means when no link is followed. It
// goes into records: what is not UTF-8 in it is replaced.
func (h *Handle) asked(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(h.object(), name)
}

// walk resolves a path below the handle, which must be a directory.
func (h *Handle) walk(name string, follow bool, op capabilities.Operation) (volume.Place, error) {
	switch {
	case h.closed:
		return volume.Place{}, capabilities.EBADF
	case h.volume.barred():
		return volume.Place{}, h.volume.refuse(op, h.asked(name))
	case h.kind != volume.Dir:
		return volume.Place{}, capabilities.ENOTDIR
	}
	h.reach()
	p, err := h.volume.tree.Walk(h.node, name, follow)
	if err != nil {
		return volume.Place{}, h.volume.translate(err, op, h.asked(name))
	}
	return p, nil
}
