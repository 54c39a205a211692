package runtime

import (
	"bytes"
	"unicode/utf8"
)

// cleanText reports whether a content block is a text, and written as cleanContent
// would write it: most are, and need not be read into values for that.
func cleanText(raw []byte) bool {
	const head, tail = `{"type":"text","text":"`, `"}`
	if len(raw) < len(head)+len(tail) || !bytes.HasPrefix(raw, []byte(head)) || !bytes.HasSuffix(raw, []byte(tail)) {
		return false
	}
	return cleanLiteral(raw[len(head) : len(raw)-len(tail)])
}

// cleanLiteral reports whether encoding/json would write the same between the quotes
// of a text, without escaping markup.
func cleanLiteral(s []byte) bool {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"', c < ' ':
			return false
		case c == '\\':
			if i++; i == len(s) || bytes.IndexByte([]byte(`"\bfnrt`), s[i]) < 0 {
				return false
			}
			i++
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
				return false
			}
			i += size
		}
	}
	return true
}
