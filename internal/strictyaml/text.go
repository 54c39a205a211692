package strictyaml

import (
	"fmt"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/internal/term"
)

// Hidden reports whether a rune can hide text from a reader, or steer a
// terminal, where names and descriptions are shown. Line breaks and tabs may
// stand in texts.
func Hidden(r rune) bool {
	return r != '\n' && r != '\t' && r != '\r' && term.Hidden(r)
}

// HiddenIn returns what is hidden in s, for a message, or "".
func HiddenIn(s string) string {
	if !utf8.ValidString(s) {
		return "bytes that are not UTF-8"
	}
	selector := false
	runes := []rune(s)
	for i, r := range runes {
		// One variation selector belongs to an emoji; a run of them carries data.
		sel := r >= 0xfe00 && r <= 0xfe0f
		bare := r == '\r' && (i+1 == len(runes) || runes[i+1] != '\n')
		if Hidden(r) || bare || sel && selector {
			return fmt.Sprintf("the hidden character U+%04X", r)
		}
		selector = sel
	}
	return ""
}
