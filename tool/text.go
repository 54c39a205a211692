package tool

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a rune can hide text from a reader, or steer a
// terminal, where names and descriptions are shown: control characters except
// line breaks and tabs, bidirectional controls, invisible fillers and tags.
// The joiners U+200C and U+200D stay: Persian and emoji need them.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x200c, r == 0x200d:
		return false
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0xe0000 && r <= 0xe0fff, r >= 0x180b && r <= 0x180f:
		return true
	case r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef:
		return true
	}
	return false
}

// hiddenIn returns what is hidden in s, for a message, or "".
func hiddenIn(s string) string {
	if !utf8.ValidString(s) {
		return "bytes that are not UTF-8"
	}
	selector := false
	runes := []rune(s)
	for i, r := range runes {
		// One variation selector belongs to an emoji; a run of them carries data.
		sel := r >= 0xfe00 && r <= 0xfe0f
		bare := r == '\r' && (i+1 == len(runes) || runes[i+1] != '\n')
		if hidden(r) || bare || sel && selector {
			return fmt.Sprintf("the hidden character U+%04X", r)
		}
		selector = sel
	}
	return ""
}
