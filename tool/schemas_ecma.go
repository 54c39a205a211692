package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// JSON Schema has the regular expressions of ECMA-262. Those of RE2 are the same
// for the most part; what reads in both and means different things is translated
// or refused.
const (
	// ecmaSpace is what \s takes there beyond RE2's, as ranges of a class. As part
	// of a class it begins with an escape, and ends with a range, so that a hyphen
	// beside it means what it did.
	ecmaSpace = `\s\v\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}-\x{feff}`
	// ecmaSolid is all else.
	ecmaSolid = `\w\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	ecmaDot   = `[^\n\r\x{2028}\x{2029}]`
)

// maxPattern bounds the text of one pattern, in bytes: parsing may take a
// thousand times as much memory.
const maxPattern = 8 << 10

// fromECMA returns the pattern of RE2 that matches what a pattern of ECMA-262
// does. Syntax that only RE2 has is kept where ECMA-262 has no meaning for it.
func fromECMA(text string) (string, error) {
	if len(text) > maxPattern {
		return "", &flaw{fmt.Sprintf("a pattern has more than %d bytes", maxPattern), "shorten it"}
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(text); {
		rest := text[i:]
		n := 1
		piece := rest[:1]
		switch c := rest[0]; {
		case c == '\\' && len(rest) > 1:
			var err error
			if n, piece, err = ecmaEscape(rest, class); err != nil {
				return "", err
			}
		case class && strings.HasPrefix(rest, "[:") && strings.Contains(rest[2:], ":]"):
			return "", &flaw{"[:class:] means something else in ECMA-262", "write the characters, for example a-zA-Z"}
		case class && c == ']':
			class = false
		case class:
		case strings.HasPrefix(rest, "[]"), strings.HasPrefix(rest, "[^]"):
			return "", &flaw{"[] and [^] mean something else in ECMA-262", `write \] in a class, or [\s\S]`}
		case c == '[':
			class = true
			if strings.HasPrefix(rest, "[^") {
				n, piece = 2, "[^"
			}
		case c == '.':
			piece = ecmaDot
		case strings.HasPrefix(rest, "(?"):
			if err := ecmaFlags(rest[2:]); err != nil {
				return "", err
			}
		}
		b.WriteString(piece)
		i += n
	}
	return b.String(), nil
}

// ecmaEscape translates the escape that a text begins with, and returns its
// length.
func ecmaEscape(text string, class bool) (n int, piece string, err error) {
	bracketed := func(ranges string) string {
		if class {
			return ranges
		}
		return "[" + ranges + "]"
	}
	switch c := text[1]; {
	case c == 's':
		return 2, bracketed(ecmaSpace), nil
	case c == 'S':
		return 2, bracketed(ecmaSolid), nil
	case strings.IndexByte(`AzQECa123456789`, c) >= 0:
		return 0, "", &flaw{fmt.Sprintf(`\%c means something else in ECMA-262`, c), "write ^, $ or the characters themselves"}
	}
	_, size := utf8.DecodeRuneInString(text[1:])
	return 1 + size, text[:1+size], nil
}

// ecmaFlags checks the flags of a group, after "(?": with s and m, dots and
// anchors take other characters than those of ECMA-262.
func ecmaFlags(text string) error {
	end := strings.IndexAny(text, ":)")
	if end < 0 {
		return nil // no group of RE2
	}
	flags := text[:end]
	if strings.Trim(flags, "imsU-") == "" && strings.ContainsAny(flags, "sm") {
		return &flaw{"the flags s and m mean something else in ECMA-262", `write [\s\S] for any character`}
	}
	return nil
}
