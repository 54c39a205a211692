package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// reader is a cursor over a part of a module. The first error stays, and every
// read after it returns zero without moving.
type reader struct {
	b    []byte // what may be read
	pos  int    // within b
	base int    // offset of b in the module
	err  error
}

func (r *reader) left() int { return len(r.b) - r.pos }

func (r *reader) fail(problem string) {
	if r.err == nil {
		r.err = &FormatError{Offset: r.base + r.pos, Problem: problem}
	}
}

func (r *reader) failf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

// limit records that there are more of something than there may be.
func (r *reader) limit(what string, have, most uint64) {
	if r.err == nil && have > most {
		r.err = &LimitError{What: what, Have: have, Max: most}
	}
}

// costly records that compiling would take more of something than it may.
func (r *reader) costly(what string, have, most uint64) {
	if r.err == nil && have > most {
		r.err = &LimitError{What: what, Have: have, Max: most, Costly: true}
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.left() < 1 {
		r.fail("ends too early")
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

func (r *reader) peek() byte {
	if r.err != nil || r.left() < 1 {
		return 0
	}
	return r.b[r.pos]
}

// take returns the next n bytes, which alias the module.
func (r *reader) take(n uint64) []byte {
	if r.err != nil || n > uint64(r.left()) {
		r.fail("ends too early")
		return nil
	}
	start := r.pos
	r.pos += int(n)
	return r.b[start:r.pos]
}

// sub returns a reader of the next n bytes, and moves past them.
func (r *reader) sub(n uint64) *reader {
	at := r.pos
	return &reader{b: r.take(n), base: r.base + at, err: r.err}
}

// u32 reads an unsigned LEB128 number of at most five bytes (5.2.2).
func (r *reader) u32() uint32 { return uint32(r.unsigned(32)) }

func (r *reader) unsigned(bits uint) uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if bits-shift < 7 && c>>(bits-shift) != 0 {
			r.fail("a number is too large")
			return 0
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 number of the given width (5.2.2).
func (r *reader) signed(bits uint) int64 {
	var v int64
	for shift := uint(0); ; {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if rest := bits - shift; rest < 7 {
			// The bits above the width repeat the sign.
			top := int8(c<<1) >> rest
			if c >= 0x80 || top != 0 && top != -1 {
				r.fail("a number is too large")
				return 0
			}
		}
		v |= int64(c&0x7f) << shift
		shift += 7
		if c < 0x80 {
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// count reads the length of a vector whose elements take at least one byte
// each, so that it can be no more than the bytes that are left.
func (r *reader) count(what string, most uint64) int {
	n := uint64(r.u32())
	if n > uint64(r.left()) && r.err == nil {
		r.failf("claims %d %s in %d bytes", n, what, r.left())
	}
	r.limit(what, n, most)
	if r.err != nil {
		return 0
	}
	return int(n)
}

// name reads a name: a length and UTF-8 (5.2.4).
func (r *reader) name() string {
	b := r.take(uint64(r.u32()))
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
		return ""
	}
	return string(b)
}
