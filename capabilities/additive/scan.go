package additive

import (
	"hash/maphash"
	"slices"
)

const (
	maxDepth = 10_000
	maxKeys  = 3 << 19 // of the objects that are open at once
)

// class is what JSON a content is, if any. An object on one line is both.
type class struct {
	json  bool // one document, an object or an array
	lines bool // an object on each line but for blank ones
}

type want uint8

const (
	wantDocument want = iota
	wantElement
	wantElementOrEnd
	wantKey
	wantKeyOrEnd
	wantComma
)

// state is where a scan is between two tokens, apart from what is open.
type state struct {
	want    want
	lines   bool // every document so far is an object on a line of its own
	newline bool // there was one since the document began, or since it ended
	done    bool
	docs    int64
	whole   int64 // documents that have ended
	end     int64 // where the last of them did
	depth   int   // open containers
	keys    int   // keys of the open objects
}

type container struct {
	object bool
	keys   int // of the objects around it
}

// key is one key of an object that is open.
type key struct {
	hash uint64
	at   int64
}

// scan checks a content, strictly by RFC 8259: UTF-8 and no key twice in an
// object. Strings with lone surrogates are strings.
type scan struct {
	c    *cursor
	seed maphash.Seed
	state
	open []container
	keys []key
	a, b *cursor // for looking at keys again
}

// newScan begins behind a byte order mark.
func newScan(s *source, seed maphash.Seed) *scan {
	return &scan{c: newCursor(s, afterMark(s)), seed: seed}
}

// afterMark returns where a content begins that may have a byte order mark.
func afterMark(s *source) int64 {
	var mark [3]byte
	if s.size < 3 || !s.read(mark[:], 0) || string(mark[:]) != "\uFEFF" {
		return 0
	}
	return 3
}

// class reads all and says what it is.
func (s *scan) class() class {
	_, class := s.classFork(nil)
	return class
}

// classFork is class. It also returns a scan of another content, which is the
// same up to a place at least: as far as this is sure to be so, what was found
// holds for it too. Nil: the scan ended before.
func (s *scan) classFork(other *twin) (*scan, class) {
	var fork *scan
	for !s.done {
		// Where the other content may differ within the window, the place before
		// each token is kept. A token that begins in an earlier window and goes
		// on to there is not worth it: the other content is read from the start.
		var before state
		at, near := s.c.pos(), other != nil && s.c.base+int64(len(s.c.buf)) >= other.same
		if near {
			before = s.state
		}
		ok := s.token()
		if other != nil && s.c.pos() >= other.same {
			if near {
				fork = s.fork(other.source, before, at)
			}
			other = nil
		}
		if !ok {
			return fork, class{}
		}
	}
	return fork, class{json: s.docs == 1, lines: s.state.lines && s.docs > 0}
}

// twin is a source that is equal to another one up to a place.
type twin struct {
	source *source
	same   int64
}

// fork returns a scan of another source from a place before the last token.
// What the token closed is still there behind the ends of the slices.
func (s *scan) fork(other *source, st state, at int64) *scan {
	return &scan{
		c: newCursor(other, at), seed: s.seed, state: st,
		open: slices.Clone(s.open[:st.depth]), keys: slices.Clone(s.keys[:st.keys]),
	}
}

// space passes white space and notes newlines. None is in a string.
func (s *scan) space() byte {
	c := s.c
	for {
		for c.i < len(c.buf) {
			b := c.buf[c.i]
			if b > ' ' {
				return b
			}
			if !isSpace(b) {
				return b
			}
			if b == '\n' {
				s.newline = true
			}
			c.i++
		}
		if !c.fill() {
			return 0
		}
	}
}

// token reads one token, a key with its colon, and reports whether it belongs
// there.
func (s *scan) token() bool {
	b := s.space()
	switch s.want {
	case wantComma:
		if b != ',' {
			return s.close(b)
		}
		s.c.i++
		s.want = wantElement
		if s.open[s.depth-1].object {
			s.want = wantKey
		}
		return true
	case wantKeyOrEnd:
		if b == '}' {
			return s.close(b)
		}
		return s.key(b)
	case wantKey:
		return s.key(b)
	case wantElementOrEnd:
		if b == ']' {
			return s.close(b)
		}
		return s.value(b)
	case wantElement:
		return s.value(b)
	case wantDocument:
		return s.document(b)
	}
	return false
}

// document begins a document, or ends the scan.
func (s *scan) document(b byte) bool {
	switch {
	case b == 0:
		s.done = s.c.ended()
		return s.done && s.docs > 0
	case s.docs == 0:
		s.state.lines = true
	case !s.state.lines || !s.newline:
		return false // what comes after a document is another one on another line
	}
	s.state.lines = s.state.lines && b == '{'
	s.docs++
	s.newline = false
	if b != '{' && (b != '[' || s.docs > 1) {
		return false
	}
	return s.value(b)
}

func (s *scan) value(b byte) bool {
	switch b {
	case '{', '[':
		return s.begin(b == '{')
	case '"':
		if _, short := s.c.short(); !short {
			t := openText(s.c)
			for p := t.next(); p != nil; p = t.next() {
			}
			if !t.done {
				return false
			}
		}
	case 't':
		if !s.literal("true") {
			return false
		}
	case 'f':
		if !s.literal("false") {
			return false
		}
	case 'n':
		if !s.literal("null") {
			return false
		}
	default:
		if !s.c.scanNumber() {
			return false
		}
	}
	s.want = wantComma
	return true
}

func (s *scan) literal(word string) bool {
	for i := range len(word) {
		if s.c.peek() != word[i] {
			return false
		}
		s.c.i++
	}
	return true
}

func (s *scan) begin(object bool) bool {
	if s.depth == maxDepth {
		s.c.src.m.fail(errComplex)
		return false
	}
	s.c.i++
	s.open = append(s.open[:s.depth], container{object: object, keys: s.state.keys})
	s.depth++
	s.want = wantElementOrEnd
	if object {
		s.want = wantKeyOrEnd
	}
	return true
}

func (s *scan) key(b byte) bool {
	if b != '"' {
		return false
	}
	if s.state.keys == maxKeys {
		s.c.src.m.fail(errComplex)
		return false
	}
	at := s.c.pos()
	hash, ok := hashText(s.c, s.seed)
	if !ok || s.space() != ':' {
		return false
	}
	s.c.i++
	s.keys = append(s.keys[:s.state.keys], key{hash, at})
	s.state.keys++
	s.want = wantElement
	return true
}

// close ends the innermost container.
func (s *scan) close(b byte) bool {
	top := s.open[s.depth-1]
	if end := byte(']'); top.object && b != '}' || !top.object && b != end {
		return false
	}
	if top.object && !s.distinct(s.keys[top.keys:s.state.keys]) {
		return false
	}
	s.c.i++
	s.depth--
	s.state.keys = top.keys
	s.want = wantComma
	if s.depth == 0 {
		s.want = wantDocument
		s.state.lines = s.state.lines && !s.newline
		s.newline = false
		s.whole, s.end = s.docs, s.c.pos()
	}
	return true
}

// distinct reports whether keys differ, all of them.
func (s *scan) distinct(keys []key) bool {
	if len(keys) <= 24 {
		for i, k := range keys {
			for _, other := range keys[:i] {
				if k.hash == other.hash && s.equal(k, other) {
					return false
				}
			}
		}
		return true
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.hash < b.hash {
			return -1
		}
		if a.hash > b.hash {
			return 1
		}
		return 0
	})
	for i := range keys {
		for j := i - 1; j >= 0 && keys[j].hash == keys[i].hash; j-- {
			if s.equal(keys[i], keys[j]) {
				return false
			}
		}
	}
	return true
}

// equal looks at two keys: that their hashes are equal proves nothing.
func (s *scan) equal(x, y key) bool {
	if s.a == nil {
		s.a, s.b = newCursor(s.c.src, 0), newCursor(s.c.src, 0)
	}
	s.a.seek(x.at)
	s.b.seek(y.at)
	return s.a.peek() == '"' && s.b.peek() == '"' && equalText(s.a, s.b)
}
