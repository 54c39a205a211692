package wasi

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
)

const (
	maxVectors = 1024 // iovecs in one call (POSIX IOV_MAX)
	maxPath    = 4096 // bytes of a path (POSIX PATH_MAX)

	// maxPiece is how many bytes are moved before the context is looked at
	// again: no single call holds up a deadline by more than that takes.
	maxPiece = 1 << 20
)

var le = binary.LittleEndian

// memory is the guest's linear memory. The zero memory has no byte in it.
type memory struct{ api.Memory }

// view returns the memory that the module exports as "memory", which preview 1
// demands. A module without it gets EFAULT for every pointer.
func (p *Process) view(mod api.Module) memory {
	if p.module != mod {
		p.module, p.memory = mod, memory{mod.ExportedMemory("memory")}
	}
	return p.memory
}

// bytes returns a view of n bytes at ptr, valid until the guest runs again;
// false when they are not all in the memory.
func (m memory) bytes(ptr, n uint64) ([]byte, bool) {
	if m.Memory == nil || ptr > math.MaxUint32 || n > math.MaxUint32 {
		return nil, false
	}
	return m.Read(uint32(ptr), uint32(n))
}

// path copies the path of n bytes at ptr out of the memory.
func (m memory) path(ptr, n uint64) (string, errno) {
	ptr, n = low(ptr), low(n)
	b, ok := m.bytes(ptr, n)
	switch {
	case !ok:
		return "", eFAULT
	case n > maxPath:
		return "", eNAMETOOLONG
	case !utf8.Valid(b):
		return "", eILSEQ
	}
	return string(b), success
}

// vectors returns views of the buffers that n iovecs at ptr describe, those of
// more than 1 MiB in pieces:
//
//	ptr               ptr+8
//	 +-------+-------+-------+-------+ ...
//	 | buf 0 | len 0 | buf 1 | len 1 |
//	 +-------+-------+-------+-------+ ...
//	   u32     u32
//
// dst is reused. EINVAL when there are more than 1024, or when they sum up to
// more than the memory, which no honest list does: that bounds what one call
// can make the host copy.
func (m memory) vectors(dst [][]byte, ptr, n uint64) ([][]byte, errno) {
	ptr, n = low(ptr), low(n)
	if n > maxVectors {
		return nil, eINVAL
	}
	list, ok := m.bytes(ptr, 8*n)
	if !ok {
		return nil, eFAULT
	}
	all, sum := m.size(), uint64(0)
	for ; len(list) > 0; list = list[8:] {
		size := uint64(le.Uint32(list[4:]))
		b, ok := m.bytes(uint64(le.Uint32(list)), size)
		if !ok {
			return nil, eFAULT
		}
		if sum += size; sum > all {
			return nil, eINVAL
		}
		for ; len(b) > maxPiece; b = b[maxPiece:] {
			dst = append(dst, b[:maxPiece])
		}
		dst = append(dst, b)
	}
	return dst, success
}

// size returns the size of the memory in bytes.
func (m memory) size() uint64 {
	switch {
	case m.Memory == nil:
		return 0
	case m.Size() == 0:
		pages, _ := m.Grow(0) // Size overflows at 4 GiB
		return uint64(pages) << 16
	}
	return uint64(m.Size())
}

// low returns the value of an i32 on the stack; its upper half is undefined.
func low(v uint64) uint64 { return uint64(uint32(v)) }

// writeUint64 writes a result at ptr.
func writeUint64(m memory, ptr, v uint64) errno {
	b, ok := m.bytes(low(ptr), 8)
	if !ok {
		return eFAULT
	}
	le.PutUint64(b, v)
	return success
}
