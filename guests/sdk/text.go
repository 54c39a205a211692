package sdk

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

// Texts are gone through eight bytes at a time: by bytes, WebAssembly takes 25 ns for
// each (measured with encoding/json), so that a page of text took longer than all
// else that a call does.
const (
	each = 0x0101010101010101
	high = 0x80 * each // the bits that the tests below set in the bytes they mean
	pad  = 0x2020202020202000
)

// zeroes marks the bytes that are zero; of marks, only the lowest is sure.
func zeroes(w uint64) uint64 { return (w - each) &^ w & high }

// special marks what is not part of a plain text: bytes of no ASCII, control
// characters, quotes and backslashes; and ampersands, which may be a false alarm.
func special(w uint64) uint64 {
	return w&high | (w-' '*each)&^w&high | zeroes((w|4*each)^'&'*each) | zeroes(w^'\\'*each)
}

// marked also marks what encoding/json escapes for the sake of HTML.
func marked(w uint64) uint64 { return special(w) | zeroes((w|2*each)^'>'*each) }

// plainRun returns how many bytes of s encoding/json writes as they are, up to the
// first that it may not.
func plainRun(s string) int {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		p := s[i : i+8]
		w := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		if m := marked(w); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(s) && marked(uint64(s[i])|pad) == 0 {
		i++
	}
	return i
}

// simpleRun returns how many bytes of b can be in a string of JSON and stand for
// themselves in any case, up to the first that may not.
func simpleRun(b []byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && special(uint64(b[i])|pad) == 0 {
		i++
	}
	return i
}

// appendQuoted appends a text as encoding/json writes it.
func appendQuoted(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for {
		n := plainRun(s)
		b = append(b, s[:n]...)
		if s = s[n:]; s == "" {
			return append(b, '"')
		}
		size := 1
		switch c := s[0]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			if c < utf8.RuneSelf {
				b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
				break
			}
			var r rune
			switch r, size = utf8.DecodeRuneInString(s); {
			case r == utf8.RuneError && size == 1:
				b = append(b, `\ufffd`...)
			case r == '\u2028', r == '\u2029':
				b = append(b, `\u202`...)
				b = append(b, digits[r&15])
			default:
				b = append(b, s[:size]...)
			}
		}
		s = s[size:]
	}
}

// readText returns the string that begins at b[i], and the index behind it; unsure
// where it is not plainly one.
func readText(b []byte, i int) (string, int) {
	if i >= len(b) || b[i] != '"' {
		return "", unsure
	}
	from, ascii, escaped := i+1, true, false
	for i++; ; {
		i += simpleRun(b[i:])
		switch {
		case i >= len(b) || b[i] < ' ':
			return "", unsure
		case b[i] == '"':
			if escaped || !ascii && !utf8.Valid(b[from:i]) {
				return unquoted(b[from-1:i+1], i+1)
			}
			return string(b[from:i]), i + 1
		case b[i] == '\\':
			escaped = true
			i = min(i+2, len(b))
		default:
			ascii = ascii && b[i] < utf8.RuneSelf
			i++
		}
	}
}

// unquoted reads a string with its quotes. What is common is read here, the rest by
// encoding/json.
func unquoted(quoted []byte, end int) (string, int) {
	out := make([]byte, 0, len(quoted))
	for rest := quoted[1 : len(quoted)-1]; ; {
		n := simpleRun(rest)
		out = append(out, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			return string(out), end
		}
		if rest[0] == '\\' && len(rest) > 1 {
			if c := unescaped(rest[1]); c != 0 {
				out, rest = append(out, c), rest[2:]
				continue
			}
		} else if r, size := utf8.DecodeRune(rest); r != utf8.RuneError || size > 1 {
			out, rest = append(out, rest[:size]...), rest[size:]
			continue
		}
		var s string
		if json.Unmarshal(quoted, &s) != nil {
			return "", unsure
		}
		return s, end
	}
}

// unescaped returns what a letter after a backslash stands for; 0 for none that is
// a byte.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}
