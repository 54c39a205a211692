package files

import (
	"errors"
	"io"
	"math"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// ReadAt reads from the file at the offset, in bytes. Fewer bytes than asked
// for without an error mean the end of the file. It returns EBADF when the
// handle was not opened for reading, EISDIR for a directory.
func (h *Handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.live(capabilities.OpRead); err != nil {
		return 0, err
	}
	switch {
	case h.kind == volume.Dir:
		return 0, capabilities.EISDIR
	case !h.read:
		return 0, capabilities.EBADF
	case off < 0:
		return 0, capabilities.EINVAL
	case len(p) == 0:
		return 0, nil
	}
	n, err := h.volume.tree.ReadAt(h.node, p, off)
	if err == nil || errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, h.volume.translate(err, capabilities.OpRead, h.object())
}

// WriteAt writes to the file at the offset, in bytes. For a read-only tool it
// is an attempt to write on whatever handle; for others EBADF when the handle
// was not opened for writing.
func (h *Handle) WriteAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, h.unless(capabilities.OpWrite, capabilities.EINVAL)
	case off > math.MaxInt64-int64(len(p)):
		return 0, h.unless(capabilities.OpWrite, capabilities.EFBIG)
	}
	if err := h.change(capabilities.OpWrite, len(p) == 0); err != nil || len(p) == 0 {
		return 0, err
	}
	n, err := h.volume.tree.WriteAt(h.node, p, off)
	if err != nil {
		return n, h.volume.translate(err, capabilities.OpWrite, h.object())
	}
	return n, nil
}

// Append writes to the end of the file and returns how many bytes it wrote and
// the size after, in bytes. It is refused as [Handle.WriteAt] is.
func (h *Handle) Append(p []byte) (n int, size int64, err error) {
	if err := h.change(capabilities.OpWrite, len(p) == 0); err != nil {
		return 0, 0, err
	}
	i, err := h.Stat()
	if err != nil {
		return 0, 0, err
	}
	n, err = h.WriteAt(p, i.Size)
	return n, i.Size + int64(n), err
}

// SetSize cuts the file or fills it with zeros. Negative sizes are EINVAL. It
// is refused as [Handle.WriteAt] is.
func (h *Handle) SetSize(size int64) error {
	if size < 0 {
		return h.unless(capabilities.OpSetSize, capabilities.EINVAL)
	}
	if err := h.change(capabilities.OpSetSize, false); err != nil {
		return err
	}
	if err := h.volume.tree.Truncate(h.node, size); err != nil {
		return h.volume.translate(err, capabilities.OpSetSize, h.object())
	}
	return nil
}

// Allocate makes the file at least off+n bytes long. It never shortens one. It
// is refused as [Handle.WriteAt] is; POSIX posix_fallocate: EINVAL for n < 1.
func (h *Handle) Allocate(off, n int64) error {
	switch {
	case off < 0 || n < 1:
		return h.unless(capabilities.OpSetSize, capabilities.EINVAL)
	case off > math.MaxInt64-n:
		return h.unless(capabilities.OpSetSize, capabilities.EFBIG)
	}
	if err := h.change(capabilities.OpSetSize, false); err != nil {
		return err
	}
	i, err := h.Stat()
	if err != nil || i.Size >= off+n {
		return err
	}
	if err := h.volume.tree.Truncate(h.node, off+n); err != nil {
		return h.volume.translate(err, capabilities.OpSetSize, h.object())
	}
	return nil
}

// change refuses what would change the content of the file. For a read-only
// tool even a handle that cannot write is an attempt; empty ones are none.
func (h *Handle) change(op capabilities.Operation, empty bool) error {
	if err := h.live(op); err != nil {
		return err
	}
	if h.kind == volume.Dir {
		return capabilities.EISDIR
	}
	if h.volume.claimed && !empty {
		if err := h.volume.attempt(op, h.object()); err != nil {
			return err
		}
	}
	if !h.write {
		return capabilities.EBADF
	}
	return nil
}

// unless returns the errno of arguments that make no sense, unless the handle
// may not be used at all.
func (h *Handle) unless(op capabilities.Operation, e capabilities.Errno) error {
	if err := h.live(op); err != nil {
		return err
	}
	return e
}
