package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a set of characters, as in [a-z_].
type class struct {
	negate bool
	ranges [][2]rune
	named  []func(rune) bool
}

func (c *class) has(r rune) bool {
	for _, b := range c.ranges {
		if b[0] <= r && r <= b[1] {
			return !c.negate
		}
	}
	for _, in := range c.named {
		if in(r) {
			return !c.negate
		}
	}
	return c.negate
}

// named are the classes of POSIX, by Unicode.
var named = map[string]func(rune) bool{
	"[:alnum:]":  func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nl, unicode.Nd) },
	"[:alpha:]":  func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nl) },
	"[:ascii:]":  func(r rune) bool { return r < 0x80 },
	"[:blank:]":  func(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) },
	"[:cntrl:]":  func(r rune) bool { return unicode.Is(unicode.Cc, r) },
	"[:digit:]":  func(r rune) bool { return unicode.Is(unicode.Nd, r) },
	"[:graph:]":  func(r rune) bool { return !unicode.In(r, unicode.Z, unicode.C) },
	"[:lower:]":  func(r rune) bool { return unicode.Is(unicode.Ll, r) },
	"[:print:]":  func(r rune) bool { return !unicode.Is(unicode.C, r) },
	"[:punct:]":  func(r rune) bool { return unicode.Is(unicode.P, r) },
	"[:space:]":  func(r rune) bool { return strings.ContainsRune("\t\r\n\v\f", r) || unicode.Is(unicode.Z, r) },
	"[:upper:]":  func(r rune) bool { return unicode.Is(unicode.Lu, r) },
	"[:word:]":   func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nl, unicode.Nd, unicode.Pc) },
	"[:xdigit:]": func(r rune) bool { return r < 0x80 && strings.ContainsRune("0123456789abcdefABCDEF", r) },
}

// parseClass parses what follows a [ and returns how long it is, with the ]: 0 where
// it is not closed. A class that nothing can be in makes the whole name impossible.
func parseClass(text string) (n node, size int) {
	c := &class{}
	i := 0
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^") {
		c.negate = true
		i++
	}
	first := i
	for i < len(text) {
		if text[i] == ']' && i > first {
			if c.ranges == nil && c.named == nil {
				return node{kind: impossible}, i + 1
			}
			return node{kind: one, class: c}, i + 1
		}
		if name, in := posix(text[i:]); in != nil {
			c.named = append(c.named, in)
			i += len(name)
			continue
		}
		from, used := character(text[i:])
		i += used
		rest, dash := strings.CutPrefix(text[i:], "-")
		if !dash || rest == "" || rest[0] == ']' {
			c.ranges = append(c.ranges, [2]rune{from, from})
			continue
		}
		if _, in := posix(rest); in != nil {
			return node{kind: impossible}, len(text)
		}
		to, used := character(rest)
		i += 1 + used
		if from <= to {
			c.ranges = append(c.ranges, [2]rune{from, to})
		}
	}
	return node{}, 0
}

// posix returns the named class that the text begins with; nil without one.
func posix(text string) (string, func(rune) bool) {
	if !strings.HasPrefix(text, "[:") {
		return "", nil
	}
	end := strings.Index(text, ":]")
	if end < 0 {
		return "", nil
	}
	return text[:end+2], named[text[:end+2]]
}

// character returns the first character of a text, which a backslash may escape, and
// its length.
func character(text string) (rune, int) {
	escape := 0
	if text[0] == '\\' && len(text) > 1 {
		escape = 1
	}
	r, size := utf8.DecodeRuneInString(text[escape:])
	return r, escape + size
}
