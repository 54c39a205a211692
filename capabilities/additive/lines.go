package additive

import (
	"bytes"
	"unicode/utf8"
)

// isText reports whether a content is UTF-8 without NUL.
func isText(s *source) bool {
	c := newCursor(s, 0)
	for c.fill() {
		c.need(utf8.UTFMax)
		b := c.buf
		if len(b) >= utf8.UTFMax && c.base+int64(len(b)) < s.size {
			b = b[:len(b)-cutRune(b)]
		}
		if bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
			return false
		}
		if cut := len(c.buf) - len(b); cut > 0 {
			c.buf = b // the next window begins with what this one cuts
		}
	}
	return s.m.err == nil
}

// cutRune returns how many bytes at the end begin a code point that goes on.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax; n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// lineMatcher looks for the lines of one text in another, in order. Taking the
// first line that is equal is enough, as it is in arrays.
type lineMatcher struct {
	m        *meter
	old, new *cursor
	line     int64 // how many old lines were found
	added    bool
	between  bool
}

// lines reports whether all old lines are there.
func (x *lineMatcher) lines() bool {
	skipped := false
	for !x.old.ended() {
		if !skipped {
			x.alike()
		}
		if x.old.ended() {
			break
		}
		start := x.old.pos()
		for {
			if x.new.ended() || x.m.err != nil {
				return false
			}
			if x.equal() {
				break
			}
			x.old.seek(start)
			if !x.new.nextLine() {
				return false
			}
			x.added, skipped = true, true
		}
		x.between = x.between || skipped
		x.line++
		skipped = false
	}
	x.added = x.added || !x.new.ended()
	return x.m.err == nil
}

// alike passes lines that are equal byte by byte, as far as the windows go. It
// stays at the beginning of a line.
func (x *lineMatcher) alike() {
	for {
		a, b := x.old.window(), x.new.window()
		n := bytes.LastIndexByte(a[:common(a, b)], '\n') + 1
		if n == 0 {
			return
		}
		x.line += int64(bytes.Count(a[:n], []byte{'\n'}))
		x.old.i += n
		x.new.i += n
	}
}

// window returns what there is to see, at least one byte but at the end.
func (c *cursor) window() []byte {
	if c.i == len(c.buf) {
		c.fill()
	}
	return c.buf[c.i:]
}

// equal compares the lines at the cursors and passes them if they are equal,
// else goes somewhere in them.
func (x *lineMatcher) equal() bool {
	for {
		a, b := x.old.window(), x.new.window()
		n := common(a, b)
		if i := bytes.IndexByte(a[:n], '\n'); i >= 0 {
			n = i // both lines end here, perhaps after different numbers of \r
		}
		if n > 0 && a[n-1] == '\r' {
			n-- // what it is shows with the next byte
		}
		x.old.i += n
		x.new.i += n
		if n > 0 {
			continue
		}
		p, q := x.old.lineEnd(), x.new.lineEnd()
		if p >= 0 && q >= 0 {
			x.old.i += p
			x.new.i += q
			return true
		}
		if p >= 0 || q >= 0 || x.old.peek() != x.new.peek() || x.m.err != nil {
			return false
		}
		x.old.i++
		x.new.i++
	}
}

// lineEnd returns the length of the line break at the cursor, 0 at the end of
// the content, -1 within a line.
func (c *cursor) lineEnd() int {
	c.need(2)
	switch b := c.buf[c.i:]; {
	case len(b) == 0:
		return 0
	case b[0] == '\n':
		return 1
	case len(b) > 1 && b[0] == '\r' && b[1] == '\n':
		return 2
	}
	return -1
}

// nextLine goes behind the next line break, or to the end. It reports whether
// it could.
func (c *cursor) nextLine() bool {
	for {
		b := c.window()
		if len(b) == 0 {
			return c.src.m.err == nil
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			c.i += i + 1
			return true
		}
		c.i = len(c.buf)
	}
}
