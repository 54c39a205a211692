package additive

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
)

const (
	minWindow = 1 << 10   // after a jump
	maxWindow = 128 << 10 // when reading on
)

// source is one side of a comparison.
type source struct {
	r     io.ReaderAt
	size  int64
	m     *meter
	short error // what it means that there is less to read
	most  int   // bytes in a window; 0: maxWindow
}

// window returns how large windows become.
func (s *source) window() int {
	if s.most > 0 {
		return s.most
	}
	return maxWindow
}

// read fills p, or fails the meter.
func (s *source) read(p []byte, off int64) bool {
	if !s.m.charge(int64(len(p) / 8)) {
		return false
	}
	n, err := s.r.ReadAt(p, off)
	switch {
	case n == len(p):
		return true
	case err == nil || errors.Is(err, io.EOF):
		err = s.short
	}
	s.m.fail(err)
	return false
}

// cursor is a place in a source, with a window on what follows.
type cursor struct {
	src   *source
	buf   []byte // the window
	base  int64  // where it begins
	i     int    // the place in it
	from  int64  // the place to which the last seek led: what lies between is not charged yet
	mem   []byte
	ahead int
}

func newCursor(s *source, at int64) *cursor {
	return &cursor{src: s, base: at, from: at, ahead: s.window()}
}

func (c *cursor) pos() int64 { return c.base + int64(c.i) }

// ended reports whether all was read.
func (c *cursor) ended() bool { return c.pos() >= c.src.size }

// peek returns the byte at the cursor, 0 at the end. No format in which it is
// used has a 0 of its own.
func (c *cursor) peek() byte {
	if c.i < len(c.buf) || c.fill() {
		return c.buf[c.i]
	}
	return 0
}

// fill moves the window on.
func (c *cursor) fill() bool { return c.load(c.base+int64(len(c.buf)), 1) }

func (c *cursor) load(at int64, least int) bool {
	c.base, c.buf, c.i = at, c.buf[:0], 0
	left := c.src.size - at
	if left <= 0 || c.src.m.err != nil {
		return false
	}
	n := int(min(left, int64(max(c.ahead, least))))
	c.ahead = min(2*c.ahead, c.src.window())
	if cap(c.mem) < n {
		c.mem = make([]byte, n)
	}
	if !c.src.read(c.mem[:n], at) {
		return false
	}
	c.buf = c.mem[:n]
	return true
}

// need makes sure that the window has n bytes at the cursor, or all to the end.
func (c *cursor) need(n int) {
	if len(c.buf)-c.i < n && c.base+int64(len(c.buf)) < c.src.size {
		c.load(c.pos(), n)
	}
}

// seek goes elsewhere. What was passed since the last time is charged: all
// work is reading on from somewhere.
func (c *cursor) seek(at int64) {
	c.src.m.charge(c.pos() - c.from + 1)
	c.from = at
	if at >= c.base && at <= c.base+int64(len(c.buf)) {
		c.i = int(at - c.base)
		return
	}
	c.base, c.buf, c.i, c.ahead = at, c.buf[:0], 0, min(minWindow, c.src.window())
}

// space passes white space (RFC 8259) and returns what comes then, 0 at the
// end.
func (c *cursor) space() byte {
	for {
		for c.i < len(c.buf) {
			b := c.buf[c.i]
			if b > ' ' || !isSpace(b) {
				return b
			}
			c.i++
		}
		if !c.fill() {
			return 0
		}
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// common returns how many bytes two slices have in common in front.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// prefix returns how many bytes two sources have in common in front.
func prefix(a, b *source) int64 {
	x, y := newCursor(a, 0), newCursor(b, 0)
	for x.fill() && y.fill() {
		n := common(x.buf, y.buf)
		if n < len(x.buf) || n < len(y.buf) {
			return x.base + int64(n)
		}
	}
	return x.base
}
