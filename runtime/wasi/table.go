package wasi

import (
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// maxDescriptors is how many descriptors a call can have open besides its
// volumes.
const maxDescriptors = 1024

// stream is one of the three standard streams.
type stream uint8

const (
	noStream stream = iota
	stdin
	stdout
	stderr
)

// descriptor is an open file, directory or stream.
type descriptor struct {
	stream  stream        // noStream for files and directories
	file    *files.Handle // nil for streams
	preopen string        // the mount, for what was opened before the guest started
	offset  int64         // bytes, of files
	flags   uint16        // fdflags
	listing listing       // of directories

	dropped   rights // given up by the guest
	uninherit rights // given up for what is opened below
}

func (d *descriptor) dir() bool { return d.file != nil && d.file.Kind() == volume.Dir }

// close releases what is behind the descriptor.
func (d *descriptor) close() error {
	d.listing = listing{}
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// table holds the open descriptors by number, nil for numbers that are free.
type table struct {
	slots []*descriptor
	low   int // no number below it is free
	limit int // of the numbers
}

// get returns the descriptor of that number.
func (t *table) get(fd uint64) (*descriptor, bool) {
	fd = low(fd)
	if fd >= uint64(len(t.slots)) || t.slots[fd] == nil {
		return nil, false
	}
	return t.slots[fd], true
}

// lowest returns the lowest free number, as POSIX open does; false when the
// call has as many descriptors open as it may.
func (t *table) lowest() (int, bool) {
	for t.low < len(t.slots) && t.slots[t.low] != nil {
		t.low++
	}
	return t.low, t.low < t.limit
}

// add gives the descriptor the lowest free number.
func (t *table) add(d *descriptor) (int, bool) {
	fd, ok := t.lowest()
	if !ok {
		return 0, false
	}
	if fd == len(t.slots) {
		t.slots = append(t.slots, nil)
	}
	t.slots[fd] = d
	return fd, true
}

// remove frees a number that is open.
func (t *table) remove(fd uint64) {
	i := int(low(fd))
	t.slots[i] = nil
	t.low = min(t.low, i)
}

// close closes all descriptors.
func (t *table) close() {
	for _, d := range t.slots {
		if d != nil {
			_ = d.close() // of a handle that is open: it has no error to tell
		}
	}
	t.slots, t.low = nil, 0
}
