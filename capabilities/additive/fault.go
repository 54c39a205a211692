package additive

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// reason is what happened to something that was there.
type reason uint8

const (
	keyRemoved reason = iota
	valueChanged
	typeChanged
	elementLost
)

// miss is an old value that is not included in a new one. The path of the
// matcher leads there: from a failure on nobody touches it, but may cut it, until
// something else is compared.
type miss struct {
	depth    int // of the path
	why      reason
	from, to kind  // of the values, where there are two
	old, new int64 // places of the values, where they are scalars
}

// fault finds out about a loss. Without it a comparison only says no: what was
// lost in an array is a guess, since no new element is the successor of an old one.
type fault struct{ miss miss }

// fails notes what was lost. It returns false.
func (x *matcher) fails(why reason, from, to kind) bool {
	if x.fault != nil {
		x.fault.miss = miss{depth: len(x.path), why: why, from: from, to: to, old: x.old.pos(), new: x.new.pos()}
	}
	return false
}

// tries are the attempts to find one old element among new ones. The guess is
// the new element that kept most before it differed.
type tries struct {
	fault *fault
	best  miss
	path  []segment // of the best, once that is held
	held  bool
	most  int64
	n     int
}

func (f *fault) tries() *tries {
	if f == nil {
		return nil
	}
	return &tries{fault: f}
}

// tried notes an attempt; before is how much was equal then.
func (t *tries) tried(x *matcher, before int64) {
	if t == nil {
		return
	}
	if kept := x.equal - before; t.n == 0 || kept > t.most {
		t.best, t.most, t.held = t.fault.miss, kept, false
	}
	t.n++
}

// hold keeps the path of the best attempt before another one is made.
func (t *tries) hold(x *matcher) {
	if t == nil || t.n == 0 || t.held || !x.m.charge(int64(t.best.depth)) {
		return
	}
	t.path = append(t.path[:0], x.path[:t.best.depth]...)
	t.held = true
}

// failed notes that there is no such new element. It returns false.
func (t *tries) failed(x *matcher) bool {
	switch {
	case t == nil:
	case t.n > 0 && (t.most > 0 || t.best.why == keyRemoved):
		t.fault.miss = t.best
		if t.held {
			x.path = append(x.path[:0], t.path...)
		}
	default:
		return x.fails(elementLost, noValue, noValue)
	}
	return false
}

const (
	maxSegment = 64
	maxPointer = 512
)

// pointer returns the path as a JSON pointer, each segment and the whole cut
// where they are long. What cannot be printed is as \u and its number.
func (x *matcher) pointer() string {
	var b strings.Builder
	for _, s := range x.path {
		if b.Len() > maxPointer {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		if s.key < 0 {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		x.old.seek(s.key)
		name, whole := cutText(x.old, maxSegment)
		seg := string(name)
		if !whole {
			seg = strings.ToValidUTF8(seg, "") + "…"
		}
		b.WriteString(escapeSegment(printable(seg)))
	}
	return b.String()
}

// printable returns text without control characters, line breaks and the like.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r != utf8.RuneError && strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
