package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
)

// Errors of a scanner, besides the end of its context.
var (
	errSyntax = errors.New("not JSON")
	errDepth  = errors.New("answer nests too deep")
)

// maxDepth is how deep objects and arrays may lie in one another.
const maxDepth = 64

// scanPace is how many bytes are read between two looks at the context.
const scanPace = 1 << 20

// scanner reads JSON (RFC 8259) and keeps nothing of it: what a guest wrote is
// held against the host's bounds by it before memory is taken for any of it.
// Bytes of texts that are not ASCII pass as they are.
type scanner struct {
	ctx    context.Context
	in     []byte
	at     int
	paced  int // where the context is looked at next
	values int // read so far
}

// pace returns the cause of the context once that has ended.
func (s *scanner) pace() error {
	if s.at < s.paced {
		return nil
	}
	s.paced = s.at + scanPace
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// peek skips white space and returns the byte that follows; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take reads one byte of punctuation.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// value reads one value, which lies in so many objects and arrays.
func (s *scanner) value(depth int) error {
	s.values++
	if err := s.pace(); err != nil {
		return err
	}
	switch s.peek() {
	case '{':
		return s.members(depth, func([]byte) error { return s.value(depth + 1) })
	case '[':
		return s.items(depth, func() error { return s.value(depth + 1) })
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// members reads an object; each reads the value under a key, which is given as
// it is written.
func (s *scanner) members(depth int, each func(key []byte) error) error {
	return s.list(depth, '{', '}', func() error {
		if s.peek() != '"' {
			return errSyntax
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return errSyntax
		}
		return each(key)
	})
}

// items reads an array; each reads one item.
func (s *scanner) items(depth int, each func() error) error {
	return s.list(depth, '[', ']', each)
}

func (s *scanner) list(depth int, first, last byte, each func() error) error {
	if !s.take(first) {
		return errSyntax
	}
	if depth >= maxDepth {
		return errDepth
	}
	if s.take(last) {
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if s.take(last) {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}

// text reads a text and returns it as it is written, in quotes.
func (s *scanner) text() ([]byte, error) {
	start := s.at
	for s.at++; ; s.at++ {
		s.at += unremarkable(s.in[s.at:min(len(s.in), s.at+scanPace)])
		switch {
		case s.at == len(s.in), s.in[s.at] < ' ':
			return nil, errSyntax
		case s.in[s.at] == '"':
			s.at++
			return s.in[start:s.at], nil
		case s.in[s.at] == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		}
		if err := s.pace(); err != nil {
			return nil, err
		}
	}
}

// unremarkable returns how many bytes come before the first that means something in a text.
func unremarkable(b []byte) int {
	for i, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// escape reads what follows a backslash, but for its last byte.
func (s *scanner) escape() error {
	rest := s.in[s.at+1:]
	switch {
	case len(rest) > 0 && bytes.IndexByte([]byte(`"\/bfnrt`), rest[0]) >= 0:
		s.at++
		return nil
	case len(rest) < 5 || rest[0] != 'u':
		return errSyntax
	}
	for _, c := range rest[1:5] {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return errSyntax
		}
	}
	s.at += 5
	return nil
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.in[s.at:], []byte(w)) {
		return errSyntax
	}
	s.at += len(w)
	return nil
}

func (s *scanner) number() error {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return errSyntax
	}
	if s.skip('.') && !s.digits() {
		return errSyntax
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('-') {
			s.skip('+')
		}
		if !s.digits() {
			return errSyntax
		}
	}
	return nil
}

func (s *scanner) skip(c byte) bool {
	if s.at == len(s.in) || s.in[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.in) && '0' <= s.in[s.at] && s.in[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// field is a value within what a guest wrote, and its measures.
type field struct {
	raw    []byte // nil: it is not there
	values int    // in all
	size   int    // items or members directly in it
	twice  bool
}

// measure reads a value into f, which lies in one object.
func (s *scanner) measure(f *field) error {
	f.twice = f.raw != nil
	var start, before int
	begin := func() { start, before, f.size = s.at, s.values, 0 }
	var err error
	switch c := s.peek(); c {
	case '{':
		begin()
		err = s.members(1, func([]byte) error { f.size++; return s.value(2) })
	case '[':
		begin()
		err = s.items(1, func() error { f.size++; return s.value(2) })
	default:
		begin()
		err = s.value(1)
	}
	f.raw, f.values = s.in[start:s.at], s.values-before
	return err
}

// nameOf returns the key that is written so; empty: none that a result has.
func nameOf(key []byte) []byte {
	if len(key) > 6*len("structuredContent")+2 {
		return nil
	}
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1]
	}
	var name string
	if json.Unmarshal(key, &name) != nil {
		return nil
	}
	return []byte(name)
}
