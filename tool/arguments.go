package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What one JSON value of a call may hold.
const (
	maxNesting = 64      // objects and arrays in one another
	maxValues  = 1 << 18 // values in all: each takes more of the host's memory than of the message

	// Numbers of more digits than 64 bits hold may take a thousand times as long
	// to read as others.
	exactDigits    = 19
	maxLongNumbers = 1 << 14
)

// brief returns the start of a text, on one line.
func brief(s string) string {
	const most = 60 // bytes
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// fault is what is wrong with a JSON value, where, and how it is mended.
type fault struct{ path, problem, mend string }

// strictReader reads one JSON value in which every reader of JSON sees the
// same: keys are distinct, text is Unicode. While it reads it writes the value
// again in canonical form: no white space, texts escaped in one way, numbers as
// they were.
type strictReader struct {
	in     []byte // UTF-8
	at     int
	out    []byte
	values int
	long   int  // numbers of more than exactDigits
	folded bool // keys that differ only by case are one key
}

// readStrict returns the value and its canonical form.
func readStrict(raw []byte, folded bool) (any, []byte, *fault) {
	if !utf8.Valid(raw) {
		return nil, nil, &fault{"", "not UTF-8", "encode text as UTF-8"}
	}
	r := &strictReader{in: raw, folded: folded, out: make([]byte, 0, len(raw))}
	v, f := r.value(nil, 0)
	if f == nil && (r.space() != 0 || r.at < len(raw)) {
		f = notJSON
	}
	if f != nil && !json.Valid(raw) { // that is told before what else is wrong
		at := ""
		if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(raw, new(json.RawMessage))); ok {
			at = fmt.Sprintf(" at byte %d", s.Offset)
		}
		f = &fault{"", "not JSON" + at, "send one JSON value"}
	}
	if f != nil {
		return nil, nil, f
	}
	return v, r.out, nil
}

// notJSON is what a value comes to that breaks the grammar (RFC 8259).
var notJSON = &fault{"", "not JSON", "send one JSON value"}

// spot is a place in a value: one key or index below another place.
type spot struct {
	up    *spot
	key   string
	index int // of a list, when key is empty and list is set
	list  bool
}

// pointer returns the place as a JSON pointer (RFC 6901).
func (s *spot) pointer() string {
	var tokens []string
	for ; s != nil; s = s.up {
		if s.list {
			tokens = append(tokens, strconv.Itoa(s.index))
		} else {
			tokens = append(tokens, pointerToken(s.key))
		}
	}
	if len(tokens) == 0 {
		return ""
	}
	slices.Reverse(tokens)
	return "/" + strings.Join(tokens, "/")
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerToken escapes a key for a JSON pointer.
func pointerToken(key string) string { return pointerEscapes.Replace(key) }

// space skips white space and returns the byte that follows; 0 at the end.
func (r *strictReader) space() byte {
	for ; r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *strictReader) value(at *spot, depth int) (any, *fault) {
	if r.values++; r.values > maxValues {
		return nil, &fault{"", fmt.Sprintf("more than %d values", maxValues), "send less at once"}
	}
	switch c := r.space(); c {
	case '{', '[':
		if depth++; depth > maxNesting {
			return nil, &fault{at.pointer(), fmt.Sprintf("nested deeper than %d levels", maxNesting), "flatten it"}
		}
		if c == '{' {
			return r.object(at, depth)
		}
		return r.list(at, depth)
	case '"':
		s, f := r.text(at)
		return textValue(s), f
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.number(at)
}

func (r *strictReader) word(w string) *fault {
	if !bytes.HasPrefix(r.in[r.at:], []byte(w)) {
		return notJSON
	}
	r.at += len(w)
	r.out = append(r.out, w...)
	return nil
}

// punct copies one byte of punctuation, if it comes next.
func (r *strictReader) punct(c byte) bool {
	if r.space() != c {
		return false
	}
	r.out = append(r.out, c)
	r.at++
	return true
}

func (r *strictReader) list(at *spot, depth int) (any, *fault) {
	l := listValue{}
	for r.punct('['); !r.punct(']'); {
		if len(l) > 0 && !r.punct(',') {
			return nil, notJSON
		}
		v, f := r.value(&spot{up: at, index: len(l), list: true}, depth)
		if f != nil {
			return nil, f
		}
		l = append(l, v)
	}
	return l, nil
}

func (r *strictReader) object(at *spot, depth int) (any, *fault) {
	o := newObject()
	for r.punct('{'); !r.punct('}'); {
		if len(o.keys) > 0 && !r.punct(',') || r.space() != '"' {
			return nil, notJSON
		}
		key, f := r.text(at)
		if f != nil {
			return nil, f
		}
		here := &spot{up: at, key: key}
		var fold uint64
		other := -1
		if r.folded {
			fold = foldOf(key)
			other = o.like(key, fold)
		} else {
			other = o.index(key)
		}
		switch {
		case other < 0:
		case o.keys[other] == key:
			return nil, &fault{here.pointer(), "is there twice", "send it once"}
		default:
			return nil, &fault{here.pointer(), fmt.Sprintf("differs from %q by case only", brief(o.keys[other])), "send one of them"}
		}
		if !r.punct(':') {
			return nil, notJSON
		}
		v, f := r.value(here, depth)
		if f != nil {
			return nil, f
		}
		if r.folded {
			o.addFolded(key, fold, v)
		} else {
			o.add(key, v)
		}
	}
	return o, nil
}

// text reads a string. A surrogate that is not one of a pair is an error:
// readers of JSON put different things in its place.
func (r *strictReader) text(at *spot) (string, *fault) {
	literal, escaped := literalAt(r.in[r.at:])
	if literal == nil {
		return "", notJSON
	}
	r.at += len(literal)
	if !escaped {
		r.out = append(r.out, literal...)
		return string(literal[1 : len(literal)-1]), nil
	}
	if json.Valid(literal) && lone(literal) {
		return "", &fault{at.pointer(), "holds half of a surrogate pair", "write the character itself"}
	}
	var s string
	if err := json.Unmarshal(literal, &s); err != nil {
		return "", notJSON
	}
	r.out = appendString(r.out, s)
	return s, nil
}

// literalAt returns the string literal that b begins with, without looking at what
// its escapes are; nil where it does not end, or holds control characters.
func literalAt(b []byte) (literal []byte, escaped bool) {
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[:i+1], escaped
		case c < ' ':
			return nil, false
		case c == '\\':
			escaped = true
			i++
		}
	}
	return nil, false
}

// lone reports whether a string literal of valid JSON escapes a surrogate that
// is not one of a pair.
func lone(literal []byte) bool {
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if i++; literal[i] != 'u' {
			continue
		}
		high := unit(literal[i+1:])
		i += 4
		switch {
		case high < 0xd800 || high > 0xdfff:
			continue
		case high > 0xdbff || i+2 >= len(literal) || literal[i+1] != '\\' || literal[i+2] != 'u':
			return true
		}
		if low := unit(literal[i+3:]); low < 0xdc00 || low > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}

// unit returns the code unit that four hexadecimal digits stand for.
func unit(digits []byte) uint64 {
	u, err := strconv.ParseUint(string(digits[:4]), 16, 16)
	if err != nil {
		return 0 // not in valid JSON
	}
	return u
}

// appendString writes a string as JSON. Only what JSON demands is escaped.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
