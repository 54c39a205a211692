package runtime

import "github.com/tetratelabs/wazero/experimental"

// linearMemory is a guest's memory with a limit in bytes. It remembers whether
// the guest asked for more, so that a guest which dies of it ends in the
// outcome limit. It serves one instance and is not safe for concurrent use.
type linearMemory struct {
	limit   uint64
	buf     []byte
	refused bool
}

var _ experimental.MemoryAllocator = (*linearMemory)(nil)

// Allocate returns the memory itself: an instance has one.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate returns the memory at its new size, or nil above the limit, which
// makes memory.grow answer -1.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size > uint64(cap(m.buf)) {
		grown := make([]byte, len(m.buf), min(m.limit, max(size, 2*uint64(cap(m.buf)))))
		copy(grown, m.buf)
		m.buf = grown
	}
	m.buf = m.buf[:size]
	return m.buf
}

// Free forgets the memory. The garbage collector takes it once no call can
// reach it any more.
func (m *linearMemory) Free() { m.buf = nil }
