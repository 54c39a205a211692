package additive

// unchanged compares values that have to be written alike, white space too, but
// for scalars that an exception allows to change.
func (x *matcher) unchanged() bool {
	if !x.gap() {
		return false
	}
	a, b := kindOf(x.old.peek()), kindOf(x.new.peek())
	switch {
	case a == noValue || b == noValue:
		return x.torn()
	case x.identical():
		return true
	case a != b:
		return false
	case a.scalar():
		p, q := x.old.pos(), x.new.pos()
		if x.written() {
			return true
		}
		if x.m.err != nil || x.excepted(x.exceptions, a, b, p, q) < 0 {
			return false
		}
		x.back(p, q)
		return x.old.skip() && x.new.skip()
	}
	return x.parts(a == object)
}

// parts compares what is in two containers of one type.
func (x *matcher) parts(object bool) bool {
	depth := len(x.path)
	x.old.i++
	x.new.i++
	for i := 0; ; i++ {
		a, ok := x.mark()
		switch {
		case !ok:
			return false
		case a == ']' || a == '}':
			x.old.i++
			x.new.i++
			x.path = x.path[:depth]
			return true
		case i > 0:
			if a != ',' {
				return x.torn()
			}
			x.old.i++
			x.new.i++
			if a, ok = x.mark(); !ok {
				return false
			}
		}
		s := segment{-1, i}
		if object {
			if s.key = x.old.pos(); a != '"' || !x.written() {
				return false
			}
			if a, ok = x.mark(); a != ':' || !ok {
				return false
			}
			x.old.i++
			x.new.i++
		}
		x.path = append(x.path[:depth], s)
		if !x.unchanged() {
			return false
		}
	}
}

// mark returns what comes after equal white space, and whether both sides have
// it. In place of a value they may differ.
func (x *matcher) mark() (byte, bool) {
	if !x.gap() || x.m.err != nil {
		return 0, false
	}
	a, b := x.old.peek(), x.new.peek()
	if a == b || kindOf(a) != noValue && kindOf(b) != noValue {
		return a, a != 0
	}
	return 0, false
}

// unchangedRecords compares JSON Lines as unchanged does.
func (x *matcher) unchangedRecords() bool {
	for i := 0; ; i++ {
		if !x.gap() {
			return false
		}
		if x.old.ended() || x.new.ended() {
			return x.m.err == nil && x.old.ended() && x.new.ended()
		}
		x.path = append(x.path[:0], segment{-1, i})
		if !x.unchanged() {
			return false
		}
	}
}

// gap passes white space that has to be equal.
func (x *matcher) gap() bool {
	for {
		a, b := x.old.peek(), x.new.peek()
		if !isSpace(a) && !isSpace(b) {
			return true
		}
		if a != b {
			return false
		}
		x.old.i++
		x.new.i++
	}
}
