package wasmbin

import (
	"encoding/binary"
	"math"
)

// shifter copies what a reader reads, with other numbers in some places.
type shifter struct {
	r    *reader
	out  []byte
	from int // up to where the reader's bytes were copied
}

func newShifter(r *reader) *shifter {
	return &shifter{r: r, from: r.pos, out: make([]byte, 0, r.left()+r.left()/16)}
}

// replace puts n in the place of all that was read since start.
func (s *shifter) replace(start int, n uint32) {
	s.out = append(s.out, s.r.b[s.from:start]...)
	s.out = binary.AppendUvarint(s.out, uint64(n))
	s.from = s.r.pos
}

// end returns the copy.
func (s *shifter) end() []byte {
	if s.r.err != nil {
		return nil
	}
	return append(s.out, s.r.b[s.from:s.r.pos]...)
}

// shifted returns the index that a function has in the rewritten module.
func (w *rewriter) shifted(i uint32) uint32 {
	if i < w.imported || i == math.MaxUint32 {
		return i
	}
	return i + 1
}

// function reads the index of a function and returns its new one.
func (w *rewriter) function(r *reader) uint32 {
	return w.shifted(w.p.index(r, "function", len(w.p.funcs)))
}

// constant copies a constant expression.
func (w *rewriter) constant(s *shifter) {
	constantParts(s.r, func(start int, op byte) {
		at := &reader{b: s.r.b[:s.r.pos], pos: start + 1, base: s.r.base}
		switch op {
		case opGlobalGet:
			w.p.index(at, "global", w.p.globals)
		case opRefFunc:
			s.replace(start+1, w.reference(at))
		}
		if s.r.err == nil {
			s.r.err = at.err
		}
	})
}

func (w *rewriter) globals(r *reader) []byte {
	s := newShifter(r)
	for range r.count("globals", maxGlobals) {
		valueType(r)
		mutable(r)
		w.constant(s)
	}
	return s.end()
}

func (w *rewriter) exports(r *reader) []byte {
	s := newShifter(r)
	for range r.count("exports", maxExports) {
		r.name()
		kind := Kind(r.byte())
		start := r.pos
		if kind == KindFunc {
			s.replace(start, w.reference(r))
		} else {
			r.u32() // parse has checked it
		}
	}
	return s.end()
}

func (w *rewriter) elements(r *reader) []byte {
	s := newShifter(r)
	for range r.count("element segments", maxSegments) {
		elementParts(r, func() { w.constant(s) }, func() {
			start := r.pos
			s.replace(start, w.reference(r))
		})
	}
	return s.end()
}

func (w *rewriter) data(r *reader) []byte {
	s := newShifter(r)
	for range r.count("data segments", maxSegments) {
		switch r.u32() {
		case 0:
			w.constant(s)
		case 2:
			r.u32()
			w.constant(s)
		}
		r.take(uint64(r.u32()))
	}
	return s.end()
}

// custom returns a name section with the new indices, and nil for all others.
func (w *rewriter) custom(r *reader) []byte {
	if r.name() != "name" {
		return nil
	}
	out := append([]byte(nil), r.b[:r.pos]...)
	for r.left() > 0 && r.err == nil {
		id := r.byte()
		sub := r.sub(uint64(r.u32()))
		s := newShifter(sub)
		switch id {
		case 1: // functions
			w.names(s)
		case 2: // locals of functions
			for range sub.count("functions with named locals", maxFuncs) {
				start := sub.pos
				s.replace(start, w.shifted(sub.u32()))
				nameMap(sub)
			}
		default:
			sub.take(uint64(sub.left()))
		}
		if r.err == nil {
			r.err = sub.err
		}
		out = appendSection(out, id, s.end())
	}
	return out
}

func (w *rewriter) names(s *shifter) {
	for range s.r.count("names", maxNames) {
		start := s.r.pos
		s.replace(start, w.shifted(s.r.u32()))
		s.r.name()
	}
}
