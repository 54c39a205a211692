package additive

import "fmt"

// kind is the type of a JSON value.
type kind uint8

const (
	noValue kind = iota
	object
	array
	stringValue
	number
	boolean
	null
)

// kindOf returns the type of the value that begins with a byte.
func kindOf(b byte) kind {
	switch {
	case b == '{':
		return object
	case b == '[':
		return array
	case b == '"':
		return stringValue
	case b == 't' || b == 'f':
		return boolean
	case b == 'n':
		return null
	case b == '-' || '0' <= b && b <= '9':
		return number
	}
	return noValue
}

// String returns the type as messages have it.
func (k kind) String() string {
	switch k {
	case noValue:
		return "nothing"
	case object:
		return "object"
	case array:
		return "array"
	case stringValue:
		return "string"
	case number:
		return "number"
	case boolean:
		return "boolean"
	case null:
		return "null"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// scalar reports whether the type has no parts.
func (k kind) scalar() bool { return k > array }

// skip passes one value of a document that was checked, and white space before
// it. It reports whether there was one.
func (c *cursor) skip() bool {
	for depth := 0; ; {
		switch b := c.space(); b {
		case '"':
			if !c.skipText() {
				return false
			}
		case '{', '[':
			c.i++
			depth++
		case '}', ']':
			c.i++
			depth--
		case ',', ':':
			if depth == 0 {
				return false
			}
			c.i++
			continue
		case 0:
			return false
		default:
			c.skipWord()
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// skipWord passes a number or a literal, at least one byte.
func (c *cursor) skipWord() {
	for c.i++; ; {
		for c.i < len(c.buf) && isWord(c.buf[c.i]) {
			c.i++
		}
		if c.i < len(c.buf) || !c.fill() {
			return
		}
	}
}

func isWord(b byte) bool {
	return isNumeric(b) || 'a' <= b && b <= 'z'
}

// span returns the length of the value that a slice begins with, if that ends
// before the slice does; else the negative of how much was looked at, at least
// one. It looks into few levels only: who goes down level by level and tries at
// each must not pay the depth twice.
func span(b []byte) int {
	const levels = 64
	depth := 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = endText(b, i+1)
		case '{', '[':
			if depth++; depth > levels {
				return -i
			}
			i++
			continue
		case '}', ']':
			i++
			depth--
		case ' ', '\n', '\r', '\t', ',', ':':
			i++
			continue
		default:
			for i++; i < len(b) && isWord(b[i]); {
				i++
			}
		}
		if depth <= 0 {
			if i < len(b) && depth == 0 {
				return i
			}
			break
		}
	}
	return -max(len(b), 1)
}

// endText returns where a string ends that began before i, len(b) or more for
// nowhere.
func endText(b []byte, i int) int {
	for i < len(b) {
		i += unquoted(b[i:])
		if i >= len(b) || b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	return i
}
