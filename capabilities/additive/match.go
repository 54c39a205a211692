package additive

import (
	"hash/maphash"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// matcher compares two checked documents, or two sequences of records.
//
// An old value is included in a new one by the rule of the package. For the
// elements of an array this takes the first new element that includes the old
// one, then goes on behind it. That is enough: whatever other choice there is
// that places all old elements, each can be moved forward to where this places
// it, one after another, and the later ones stay where they are. It holds for any
// relation between elements, so exceptions do not change it. Each new value is
// held against one old value at most on each level, which bounds the work.
type matcher struct {
	m          *meter
	old, new   *cursor
	seed       maphash.Seed
	exceptions []exception

	path   []segment // of the old value
	inside int       // arrays around it
	keys   int       // in all indexes

	tally
	run   run
	fault *fault // what to find out about a loss; nil: nothing
}

// tally is what a comparison has found so far. An attempt that comes to nothing
// is taken out of it.
type tally struct {
	added   bool  // there is something new
	between bool  // something old comes after it, or around it
	relaxed []int // which exceptions applied, by number
	equal   int64 // bytes of old scalars that were found again
}

// segment is one step from a document to a value in it.
type segment struct {
	key   int64 // place of the key in the old content, -1 in an array
	index int
}

// run is a stretch that is equal on both sides.
type run struct {
	delta    int64 // from the old place to the new one
	from, to int64 // in the old content
}

const lookAhead = 16 << 10

// value compares the values at the cursors and passes them if the old one is
// included in the new one.
func (x *matcher) value() bool {
	a, b := kindOf(x.old.space()), kindOf(x.new.space())
	if a == noValue || b == noValue {
		return x.torn()
	}
	if x.identical() {
		return true
	}
	switch {
	case a.scalar() && b.scalar():
		return x.scalar(a, b)
	case a != b:
		return x.fails(typeChanged, a, b)
	case a == object:
		return x.object()
	}
	x.old.i++
	x.new.i++
	return x.elements(false, 0)
}

// torn notes that a document is not the one that was checked.
func (x *matcher) torn() bool {
	x.m.fail(volume.ErrConflict)
	return false
}

// identical passes values that are written alike and short enough to be in the
// windows.
func (x *matcher) identical() bool {
	at, delta := x.old.pos(), x.new.pos()-x.old.pos()
	if delta == x.run.delta && x.run.from <= at && at < x.run.to {
		if x.leap(at) {
			return true
		}
		if x.run.from == at {
			return false
		}
	}
	a, b := x.old.buf[x.old.i:], x.new.buf[x.new.i:]
	n := common(a[:min(len(a), lookAhead)], b)
	x.run = run{delta: delta, from: at, to: at + int64(n)}
	return x.leap(at)
}

func (x *matcher) leap(at int64) bool {
	rest := x.old.buf[x.old.i:]
	n := span(rest[:min(int64(len(rest)), x.run.to-at)])
	if n < 0 {
		x.m.charge(int64(-n))
		return false
	}
	x.old.i += n
	x.equal += int64(n)
	x.new.seek(x.run.delta + at + int64(n))
	return x.m.err == nil
}

// scalar compares scalars, which may be of different types.
func (x *matcher) scalar(a, b kind) bool {
	p, q := x.old.pos(), x.new.pos()
	if a == b && x.same(a) {
		x.equal += x.old.pos() - p
		return x.m.err == nil
	}
	if x.m.err != nil {
		return false
	}
	if i := x.excepted(x.exceptions, a, b, p, q); i >= 0 {
		if !slices.Contains(x.relaxed, i) {
			x.relaxed = append(x.relaxed, i)
		}
		x.back(p, q)
		return x.old.skip() && x.new.skip()
	}
	x.back(p, q)
	if a != b {
		return x.fails(typeChanged, a, b)
	}
	return x.fails(valueChanged, a, b)
}

func (x *matcher) back(p, q int64) {
	x.old.seek(p)
	x.new.seek(q)
}

// same compares scalars of one type.
func (x *matcher) same(k kind) bool {
	switch {
	case k == stringValue:
		return equalText(x.old, x.new)
	case k == number:
		p, q := x.old.pos(), x.new.pos()
		a, b := x.old.rawNumber(), x.new.rawNumber()
		if a != nil && b != nil {
			equal, known := equalNumber(a, b)
			if !known {
				x.m.fail(errComplex)
			}
			return equal
		}
		x.back(p, q)
		if x.written() {
			return true
		}
		x.m.fail(errComplex)
		return false
	}
	return x.written()
}

// written compares scalars byte by byte.
func (x *matcher) written() bool {
	p, q := x.old.pos(), x.new.pos()
	if !x.old.skip() || !x.new.skip() {
		return x.torn()
	}
	n := x.old.pos() - p
	if x.new.pos()-q != n {
		return false
	}
	x.back(p, q)
	for n > 0 {
		a, b := x.old.chunk(n), x.new.chunk(n)
		k := min(len(a), len(b))
		if k == 0 || common(a[:k], b[:k]) < k {
			return false
		}
		x.old.i += k
		x.new.i += k
		n -= int64(k)
	}
	return true
}

// chunk returns up to n bytes of the window, at least one if there is one.
func (c *cursor) chunk(n int64) []byte {
	if c.i == len(c.buf) {
		c.fill()
	}
	return c.buf[c.i:min(int64(len(c.buf)), int64(c.i)+n)]
}

// elements compares the elements of an array, behind its bracket, or the
// records of two files, of which the first so many are equal and were passed.
func (x *matcher) elements(records bool, passed int) bool {
	x.inside++
	defer func() { x.inside-- }()
	depth := len(x.path)
	s := sequence{records: records, n: passed}
	for i := passed; ; i++ {
		more, ok := x.old.element(records, i == 0)
		if !ok {
			return x.torn()
		}
		if !more {
			return x.surplus(&s)
		}
		x.path = append(x.path[:depth], segment{-1, i})
		if !x.place(&s) {
			return false
		}
	}
}

// sequence is how far a matcher came in the new elements of one array.
type sequence struct {
	records bool
	n       int
	skipped bool // the last of them were no old ones
}

// place finds the first new element that includes the old one at the cursor.
func (x *matcher) place(s *sequence) bool {
	start, depth := x.old.pos(), len(x.path)
	tries := x.fault.tries()
	for {
		more, ok := x.new.element(s.records, s.n == 0)
		if !ok {
			return x.torn()
		}
		if !more {
			return tries.failed(x)
		}
		s.n++
		tries.hold(x)
		before, at := x.tally, x.new.pos()
		if x.between = x.between || s.skipped; x.value() {
			s.skipped = false
			return true
		}
		tries.tried(x, before.equal)
		x.tally, x.path = before, x.path[:depth]
		if x.m.err != nil {
			return false
		}
		x.added, s.skipped = true, true
		x.back(start, at)
		if !x.new.skip() {
			return x.torn()
		}
	}
}

// surplus passes the new elements that are left.
func (x *matcher) surplus(s *sequence) bool {
	for ; ; s.n++ {
		more, ok := x.new.element(s.records, s.n == 0)
		if !ok {
			return x.torn()
		}
		if !more {
			return x.m.err == nil
		}
		x.added = true
		x.between = x.between || x.inside > 1
		if !x.new.skip() {
			return x.torn()
		}
	}
}

// element goes to the next element, or behind the end.
func (c *cursor) element(records, first bool) (more, ok bool) {
	b := c.space()
	switch {
	case records:
		return b == '{', b == '{' || c.ended()
	case b == ']':
		c.i++
		return false, true
	case !first:
		if b != ',' {
			return false, false
		}
		c.i++
		b = c.space()
	}
	return b != 0, b != 0
}
