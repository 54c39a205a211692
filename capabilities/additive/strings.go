package additive

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"
)

// text reads one JSON string, decoded, in pieces. Code points are in UTF-8; a
// surrogate without a partner is the three bytes that its code point would have,
// which nothing else decodes to.
type text struct {
	c    *cursor
	esc  [4]byte
	done bool // the closing quote was passed
}

// openText begins at the opening quote, where the cursor is.
func openText(c *cursor) text {
	if c.peek() != 0 { // after a jump there was no window yet
		c.i++
	}
	return text{c: c}
}

// next returns the next piece, valid until the cursor moves on. Nil: the string
// has ended, or is none if done is not set.
func (t *text) next() []byte {
	c := t.c
	for !t.done {
		if c.i == len(c.buf) && !c.fill() {
			return nil
		}
		b := c.buf[c.i:]
		if n := runes(b); n > 0 {
			c.i += n
			return b[:n]
		}
		switch {
		case b[0] == '"':
			c.i++
			t.done = true
		case b[0] == '\\':
			return t.escape()
		case b[0] < ' ':
			return nil
		default: // a code point that the window cuts, or that is none
			c.need(utf8.UTFMax)
			if runes(c.buf[c.i:]) == 0 {
				return nil
			}
		}
	}
	return nil
}

// runes returns how many bytes in front are whole code points that a JSON
// string has as they are.
func runes(b []byte) int {
	n := plain(b)
	for n < len(b) && b[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
		n += plain(b[n:])
	}
	return n
}

func (t *text) escape() []byte {
	c := t.c
	c.need(12)
	b := c.buf[c.i:]
	if len(b) < 2 {
		return nil
	}
	if b[1] != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), b[1])
		if i < 0 {
			return nil
		}
		t.esc[0] = "\"\\/\b\f\n\r\t"[i]
		c.i += 2
		return t.esc[:1]
	}
	r, ok := unit(b)
	if !ok {
		return nil
	}
	c.i += 6
	if low, ok := unit(b[6:]); ok && 0xd800 <= r && r < 0xdc00 && 0xdc00 <= low && low < 0xe000 {
		c.i += 6
		r = (r-0xd800)<<10 | (low - 0xdc00) + 0x10000
	}
	if 0xd800 <= r && r < 0xe000 {
		t.esc = [4]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f}
		return t.esc[:3]
	}
	return t.esc[:utf8.EncodeRune(t.esc[:], r)]
}

// unit reads \u and four hexadecimal digits.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, d := range b[2:6] {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// short reads a string that is whole in the window and has no escapes.
func (c *cursor) short() ([]byte, bool) {
	if c.i >= len(c.buf) {
		return nil, false
	}
	b := c.buf[c.i+1:]
	n := plain(b)
	if n == len(b) || b[n] != '"' {
		return nil, false
	}
	c.i += n + 2
	return b[:n], true
}

// equalText compares two strings by their code points. Both cursors are at an
// opening quote; they are behind the strings when these are equal, and somewhere
// in them otherwise.
func equalText(a, b *cursor) bool {
	a.peek()
	b.peek()
	i := a.i
	if s, ok := a.short(); ok {
		if t, ok := b.short(); ok {
			return bytes.Equal(s, t)
		}
		a.i = i
	}
	x, y := openText(a), openText(b)
	var p, q []byte
	for {
		if len(p) == 0 {
			p = x.next()
		}
		if len(q) == 0 {
			q = y.next()
		}
		n := min(len(p), len(q))
		if n == 0 {
			return len(p) == len(q) && x.done && y.done
		}
		if !bytes.Equal(p[:n], q[:n]) {
			return false
		}
		p, q = p[n:], q[n:]
	}
}

// hashText reads a string and returns a hash of its code points. It reports
// whether it is one.
func hashText(c *cursor, seed maphash.Seed) (uint64, bool) {
	if s, ok := c.short(); ok {
		return maphash.Bytes(seed, s), true
	}
	var h maphash.Hash
	h.SetSeed(seed)
	t := openText(c)
	for p := t.next(); p != nil; p = t.next() {
		_, _ = h.Write(p) // never fails
	}
	return h.Sum64(), t.done
}

// cutText reads a string and returns its beginning, and whether that is all of
// it.
func cutText(c *cursor, most int) ([]byte, bool) {
	var out []byte
	t := openText(c)
	for p := t.next(); p != nil; p = t.next() {
		if len(out)+len(p) > most {
			return append(out, p[:most-len(out)]...), false
		}
		out = append(out, p...)
	}
	return out, true
}

// skipText passes a string that is known to be one.
func (c *cursor) skipText() bool {
	if c.peek() != 0 {
		c.i++
	}
	for {
		if c.i >= len(c.buf) && !c.fill() {
			return false
		}
		b := c.buf[c.i:]
		n := unquoted(b)
		c.i += n
		switch {
		case n == len(b):
		case b[n] == '"':
			c.i++
			return true
		default:
			c.need(2)
			c.i = min(c.i+2, len(c.buf))
		}
	}
}
