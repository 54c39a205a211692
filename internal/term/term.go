// Package term makes text that others wrote safe to print: a terminal obeys
// control sequences, and a reader is misled by characters that turn the
// direction of the text or that cannot be seen.
package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with every character that a terminal or a reader could be
// misled by written as an escape, such as \x1b or \u202e. Line ends and tabs
// stay.
func Text(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && Hidden(r) })
}

// Line is Text for a place that holds one line: line ends and tabs are escaped
// too.
func Line(s string) string { return escape(s, Hidden) }

// JSON returns a JSON text with the same meaning and with every such character
// written as JSON's own escape. What is not UTF-8 becomes U+FFFD, as which
// encoding/json reads it.
func JSON(b []byte) []byte {
	clean := utf8.Valid(b)
	for _, r := range string(b) {
		if r != '\n' && r != '\t' && r != '\r' && Hidden(r) {
			clean = false
			break
		}
	}
	if clean {
		return b
	}
	var out []byte
	for _, r := range string(b) {
		switch {
		case r == '\n', r == '\t', r == '\r', !Hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func escape(s string, bad func(rune) bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && invalidAt(s, i):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !bad(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func invalidAt(s string, i int) bool {
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}

// Hidden reports whether a character can mislead a reader or steer a terminal: a
// control (C0, C1, DEL; line ends and tabs too), a format character
// (bidirectional marks, joiners, tags), a line or paragraph separator, one of
// private use, a filler that shows as nothing, or no character at all. The
// joiners of Persian, Hindi and emoji are not: they neither turn nor move
// anything.
func Hidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	switch {
	case r == nonJoiner, r == joiner:
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0xe0000 && r <= 0xe0fff, r >= 0x180b && r <= 0x180f:
		return true
	}
	return r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
}

// Red, Green, Yellow, Magenta, Cyan and Bold are styles of terminals (ECMA-48,
// SGR).
const (
	Bold    = "1"
	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Magenta = "35"
	Cyan    = "36"
)

// Paint returns s in a style where on says so.
func Paint(on bool, style, s string) string {
	if !on {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}
