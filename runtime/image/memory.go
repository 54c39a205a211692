package image

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// most is the largest size of a memory, in bytes. It is a page less than what
// 32 bits reach, since a memory of that size could not be put back: see resize.
const most = (1<<16 - 1) * wasmPage

// ErrNoImage is returned where a memory without an image is to be put back.
var ErrNoImage = errors.New("memory image: the memory has none")

// Options say what a memory is of. The zero value allows no memory at all.
type Options struct {
	// Limit is what the host allows, in bytes; what is above 4 GiB - 64 KiB counts as that.
	// Default: 0, no memory at all.
	Limit uint64
	// Declared is the maximum that the module itself declares, in bytes, which
	// stands in the module no more once it is rewritten. To be refused more than
	// that is not the host's doing. Default: 0, none.
	Declared uint64
	// Min is how many bytes are to be had from the start: the module's minimum, so that the
	// engine, which does not expect a minimum to fail, never sees it fail. Default:
	// 0, or the size of the image.
	Min uint64
	// Image is what the memory is put back to. Default: none, for an instance that
	// serves once.
	Image *Image
	// Method is how. Default: the fastest that works for the image.
	Method Method
	// Keep is how many bytes of its own a memory may keep when it is put back, so
	// that the next call need not have the pages that it writes copied again; above
	// it all are given back. Default: 16 MiB.
	Keep uint64
}

const defaultKeep = 16 << 20

// Memory is the memory of one instance, which begins empty: all zeroes. It is a
// [experimental.MemoryAllocator] that allocates itself.
//
// It is not safe for concurrent use, but for Private and Free. After an error of
// Adopt, Reset or Trim its contents are not known, and every further use is an error: its
// instance has to be discarded.
type Memory struct {
	limit    uint64 // bytes
	declared uint64 // bytes
	image    *Image
	method   Method
	space    space
	guest    api.Memory // nil before Adopt
	size     uint64     // bytes that the guest has
	reach    uint64     // most that it had since pages were last dropped
	resizing bool
	refused  bool
	released bool
	failed   error
	freed    atomic.Bool
	private  atomic.Uint64
}

var (
	_ experimental.MemoryAllocator = (*Memory)(nil)
	_ experimental.LinearMemory    = (*Memory)(nil)
)

// NewMemory makes a memory for one instance. Its errors are those of the system,
// [ErrClosed] of the image, a [*MethodError], and a limit below Min or the image's size.
func NewMemory(o Options) (*Memory, error) {
	m := &Memory{limit: min(o.Limit&^(wasmPage-1), most), declared: math.MaxUint64, image: o.Image, method: o.Method}
	if o.Declared > 0 {
		m.declared = o.Declared
	}
	keep := o.Keep
	if keep == 0 {
		keep = defaultKeep
	}
	if o.Min > m.limit {
		return nil, fmt.Errorf("memory image: the module begins with %d bytes, the limit of a memory is %d", o.Min, m.limit)
	}
	if o.Image == nil {
		s, err := probed().space(m.limit, o.Min)
		if err != nil {
			return nil, err
		}
		m.space = s
		return m, nil
	}
	if o.Image.Size() > m.limit {
		return nil, fmt.Errorf("memory image: it has %d bytes, the limit of a memory is %d", o.Image.Size(), m.limit)
	}
	works := o.Image.backing.methods()
	if m.method == "" {
		m.method = works[0]
	}
	if !slices.Contains(works, m.method) {
		return nil, &MethodError{Method: m.method, Works: o.Image.Methods()}
	}
	if err := o.Image.retain(); err != nil {
		return nil, err
	}
	s, err := o.Image.backing.space(m.limit, m.method, keep)
	if err != nil {
		return nil, errors.Join(err, o.Image.release())
	}
	m.space = s
	return m, nil
}

// Allocate returns the memory itself: an instance has one.
func (m *Memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate returns the memory at a new size in bytes, or nil above its limits and where the
// system has no more, which makes memory.grow answer -1. It is the engine's to call.
func (m *Memory) Reallocate(size uint64) []byte {
	switch {
	case m.released:
		return nil
	case m.resizing:
		size = m.image.Size()
	case size > m.declared:
		return nil
	case size > m.limit:
		m.refused = true
		return nil
	}
	b := m.space.bytes(size)
	if b == nil {
		return nil
	}
	m.size = size
	m.reach = max(m.reach, size)
	if m.guest == nil {
		m.private.Store(size)
	}
	return b
}

// Free is the engine's to call, when the instance is closed. It keeps the memory
// mapped: a call that is in flight may still use it.
func (m *Memory) Free() { m.freed.Store(true) }

// Adopt drops everything that was written and becomes the image, at its size.
// guest is the instance's view of this memory. No call may be in flight.
func (m *Memory) Adopt(guest api.Memory) error {
	if err := m.usable(); err != nil {
		return err
	}
	m.guest = guest
	if err := m.space.adopt(m.reach); err != nil {
		return m.fail(err)
	}
	m.refused = false
	return m.resize(outcome{dropped: true})
}

// Reset puts back what was written since the last Adopt or Reset, at the image's
// size, and returns how many pages of the system that were. No call may be in flight.
func (m *Memory) Reset() (pages int, err error) {
	if err := m.usable(); err != nil {
		return 0, err
	}
	if m.guest == nil {
		return 0, m.fail(errors.New("memory image: reset before it was adopted"))
	}
	o, err := m.space.reset(m.reach)
	if err != nil {
		return 0, m.fail(err)
	}
	m.refused = false
	return o.changed, m.resize(o)
}

// Trim gives back the bytes of its own of a memory that was put back and not used since.
func (m *Memory) Trim() error {
	if err := m.usable(); err != nil {
		return err
	}
	o, err := m.space.trim(m.reach)
	if err != nil {
		return m.fail(err)
	}
	return m.resize(o)
}

// resize gives the guest the memory at the image's size. The engine has no call
// that makes a memory smaller, but it installs whatever Reallocate returns; so
// it is asked to grow. This needs a maximum above the present size in the module.
func (m *Memory) resize(o outcome) error {
	if m.size != m.image.Size() || m.space.moved() {
		m.resizing = true
		_, ok := m.guest.Grow(1)
		m.resizing = false
		if !ok || uint64(m.guest.Size()) != m.image.Size() {
			return m.fail(fmt.Errorf("memory image: the engine left %d bytes of %d", m.guest.Size(), m.image.Size()))
		}
	}
	if o.dropped {
		m.reach = m.image.Size()
	}
	m.private.Store(o.private + m.space.held())
	return nil
}

// Refused reports whether the guest asked for more than the limit since the last
// Adopt or Reset.
func (m *Memory) Refused() bool { return m.refused }

// Method returns how the memory is put back; it is empty where there is no image.
func (m *Memory) Method() Method { return m.method }

// Private returns how many bytes of its own the memory has, as it was when it was
// last put back, and at most, before that. A budget reckons with it. It may be called at any time.
func (m *Memory) Private() uint64 { return m.private.Load() }

// Release gives everything back to the system. No call may be in flight, and none
// may be made afterwards: what reads or writes the memory then ends the process.
func (m *Memory) Release() error {
	if m.released {
		return nil
	}
	m.released = true
	m.private.Store(0)
	err := m.space.release()
	if m.image != nil {
		err = errors.Join(err, m.image.release())
	}
	return err
}

func (m *Memory) usable() error {
	switch {
	case m.failed != nil:
		return m.failed
	case m.released || m.freed.Load():
		return ErrClosed
	case m.image == nil:
		return ErrNoImage
	}
	return nil
}

func (m *Memory) fail(err error) error {
	m.failed = err
	return err
}
