package image

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Method is how a memory is put back, as a label of metrics.
type Method string

// The methods, the fastest first.
const (
	MethodScan    Method = "scan"    // the kernel lists the pages that were written (ioctl PAGEMAP_SCAN, Linux 6.7)
	MethodPagemap Method = "pagemap" // the same, read from /proc/self/pagemap
	MethodCompare Method = "compare" // every page is compared with the image
	MethodCopy    Method = "copy"    // the whole image is copied
)

// wasmPage is the unit of a memory's size, in bytes (core specification 2.0, 4.2.8).
const wasmPage = 1 << 16

// ErrClosed is returned for what is used after it was closed or released.
var ErrClosed = errors.New("memory image: used after it was closed")

// MethodError is a method that does not work for an image.
type MethodError struct {
	Method Method
	Works  []Method // those that do, the fastest first
}

// Error returns one line that names the method and those to be had.
func (e *MethodError) Error() string {
	return fmt.Sprintf("memory image: method %q does not work here; those that do: %v", string(e.Method), e.Works)
}

// Methods returns the methods that work on this system, the fastest first. Each
// was tried on a memory of its own, once in a process.
func Methods() []Method { return slices.Clone(probed().methods) }

// Image is a memory as it was at one moment. It is safe for concurrent use.
type Image struct {
	contents *contents
	backing  backing

	mu     sync.Mutex
	users  int // memories that are not released
	closed bool
}

// backing makes the memories of an image.
type backing interface {
	// space makes an empty memory for at most limit bytes, of which those of the
	// image are there from the start. It keeps at most keep bytes of its own at a reset.
	space(limit uint64, m Method, keep uint64) (space, error)
	methods() []Method // the fastest first
	close() error
}

// New makes an image of a memory, whose size is a multiple of 64 KiB, by copying it.
func New(memory []byte) (*Image, error) {
	if len(memory)%wasmPage != 0 {
		return nil, fmt.Errorf("memory image: %d bytes are not a multiple of %d", len(memory), wasmPage)
	}
	return probed().image(memory)
}

// Size returns how many bytes the memory has.
func (i *Image) Size() uint64 { return i.contents.size }

// Methods returns the methods that work for this image, the fastest first.
func (i *Image) Methods() []Method { return slices.Clone(i.backing.methods()) }

// Close ends the image: no more memories of it can be made. What it holds is
// given back when the last of them is released.
func (i *Image) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	return i.unused()
}

// retain counts a memory.
func (i *Image) retain() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return ErrClosed
	}
	i.users++
	return nil
}

// release forgets a memory.
func (i *Image) release() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.users--
	return i.unused()
}

func (i *Image) unused() error {
	if !i.closed || i.users > 0 {
		return nil
	}
	return i.backing.close()
}
