package volume

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// ReadAt reads the content of a file, as [io.ReaderAt] does. EISDIR for a
// directory, EINVAL for a negative offset or what is no regular file.
func (o *Overlay) ReadAt(n *Node, p []byte, off int64) (int, error) {
	done, err := o.readAt(n, p, off)
	if err == nil || errors.Is(err, io.EOF) {
		o.countRead(n, int64(done))
	}
	return done, err
}

// readAt is ReadAt without an effect.
func (o *Overlay) readAt(n *Node, p []byte, off int64) (int, error) {
	if err := o.usableFile(n, off); err != nil {
		return 0, err
	}
	if off >= n.body.size {
		return 0, io.EOF
	}
	want := int(min(int64(len(p)), n.body.size-off))
	err := n.body.readAt(o.source(n), p[:want], off)
	o.settle(n)
	if err != nil {
		return 0, err
	}
	if want < len(p) {
		return want, io.EOF
	}
	return want, nil
}

// countRead remembers that the content of a base file was read. What a call
// reads of its own is no effect.
func (o *Overlay) countRead(n *Node, bytes int64) {
	if n.base != "" && (!n.dirty || n.body.keep > 0) {
		lazymap.Put(&o.read, n.base, o.read[n.base]+bytes)
	}
}

func (o *Overlay) usableFile(n *Node, off int64) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case n.kind == Dir:
		return capabilities.EISDIR
	case n.kind != File || off < 0:
		return capabilities.EINVAL
	}
	return nil
}

// WriteAt writes to a file and returns how many bytes it wrote; fewer than
// len(p) only with an error. EFBIG, a [*LimitError], and the errors of ReadAt.
func (o *Overlay) WriteAt(n *Node, p []byte, off int64) (int, error) {
	if err := o.usableFile(n, off); err != nil {
		return 0, err
	}
	if off > math.MaxInt64-int64(len(p)) {
		return 0, capabilities.EFBIG
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := o.grow(n, max(n.body.size, off+int64(len(p)))); err != nil {
		return 0, err
	}
	done, err := n.body.writeAt(o.source(n), o.taker(n), p, off)
	o.settle(n)
	o.shrink(n) // gives back what an unfinished write did not use
	if done > 0 {
		o.wrote(n)
	}
	return done, err
}

// taker charges a node for memory.
func (o *Overlay) taker(n *Node) func(int64) error {
	return func(bytes int64) error {
		c := cost{bytes: bytes}
		if err := o.budget.take(c); err != nil {
			return err
		}
		n.held = n.held.plus(c)
		return nil
	}
}

// grow charges a node for a new size, and for being changed.
func (o *Overlay) grow(n *Node, size int64) error {
	if err := o.count(n); err != nil {
		return err
	}
	c := cost{grown: max(0, max(0, size-n.baseSize)-n.held.grown)}
	if err := o.budget.take(c); err != nil {
		return err
	}
	n.held = n.held.plus(c)
	return nil
}

// shrink gives back the growth that a node's size no longer has.
func (o *Overlay) shrink(n *Node) {
	c := cost{grown: n.held.grown - max(0, n.body.size-n.baseSize)}
	o.budget.give(c)
	n.held = n.held.plus(c.negative())
}

// count charges a node once for being changed.
func (o *Overlay) count(n *Node) error {
	if n.counted {
		return nil
	}
	c := cost{files: 1}
	if err := o.budget.take(c); err != nil {
		return err
	}
	n.counted, n.held = true, n.held.plus(c)
	o.files++
	return nil
}

// wrote marks the content of a node as changed now.
func (o *Overlay) wrote(n *Node) {
	n.dirty, n.timed = true, false
	n.mtime = o.now()
	o.version++
}

func (o *Overlay) now() time.Time { return o.shown(o.clock()) }

// shown returns a time as the base would show it once it was set.
func (o *Overlay) shown(t time.Time) time.Time { return plainTime(t).Truncate(o.steps) }

// Truncate sets the size of a file; what it adds reads as zeros. It returns a
// [*LimitError] and the errors of ReadAt.
func (o *Overlay) Truncate(n *Node, size int64) error {
	if err := o.usableFile(n, size); err != nil {
		return err
	}
	if err := o.grow(n, size); err != nil {
		return err
	}
	freed := cost{bytes: n.body.truncate(size)}
	o.budget.give(freed)
	n.held = n.held.plus(freed.negative())
	o.shrink(n)
	o.wrote(n)
	return nil
}

// SetTimes sets the modification time of a file or directory. ENOTSUP for
// links and special files, EINVAL for a time that nanoseconds since 1970 in 64
// bits cannot express, a [*LimitError]. The time is cut to what the base can hold.
func (o *Overlay) SetTimes(n *Node, mtime time.Time) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case n.kind != File && n.kind != Dir:
		return capabilities.ENOTSUP
	case mtime.Before(minTime) || mtime.After(maxTime):
		return capabilities.EINVAL
	}
	if err := o.loadRoot(n); err != nil {
		return err
	}
	if err := o.count(n); err != nil {
		return err
	}
	n.mtime, n.timed = o.shown(mtime), true
	o.version++
	return nil
}
