package additive

import (
	"slices"
	"strconv"
	"strings"
)

// excepted returns which exception of a list allows a scalar to change, or -1.
// P and q are the places of the values. It leaves the cursors anywhere.
func (x *matcher) excepted(list []exception, a, b kind, p, q int64) int {
	return slices.IndexFunc(list, func(e exception) bool {
		switch {
		case !a.scalar() || !b.scalar() || !x.at(e.at):
			return false
		case e.volatile:
			return a == b
		}
		return (a == b || a == null || b == null) &&
			hasText(x.old, p, a, e.from) && hasText(x.new, q, b, e.to)
	})
}

// at reports whether the path leads where the segments do.
func (x *matcher) at(segments []string) bool {
	if len(segments) != len(x.path) {
		return false
	}
	for i, s := range x.path {
		if segments[i] != "*" && !s.is(x.old, segments[i]) {
			return false
		}
	}
	return true
}

func (s segment) is(old *cursor, want string) bool {
	if s.key < 0 {
		return strconv.Itoa(s.index) == want
	}
	old.seek(s.key)
	got, all := cutText(old, len(want))
	return all && string(got) == want
}

// hasText reports whether the scalar at a place has a text: that of a string is
// its content, of a number its value, else the literal.
func hasText(c *cursor, at int64, k kind, want string) bool {
	c.seek(at)
	switch k {
	case stringValue:
		got, all := cutText(c, len(want))
		return all && string(got) == want
	case number:
		raw := c.rawNumber()
		if raw == nil || !isNumber(want, c.src.m) {
			return false
		}
		equal, known := equalNumber(raw, []byte(want))
		return equal && known
	case boolean, null:
		c.need(len("false"))
		rest := c.buf[c.i:]
		n := 0
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		return string(rest[:n]) == want
	case noValue, object, array:
	}
	return false
}

func isNumber(s string, m *meter) bool {
	c := newCursor(&source{r: strings.NewReader(s), size: int64(len(s)), m: m}, 0)
	return c.scanNumber() && c.ended()
}
