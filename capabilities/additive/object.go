package additive

// object compares objects. As long as the keys come in the same order it goes
// along; a key that does not come next is looked for, and what is passed
// meanwhile is remembered.
func (x *matcher) object() bool {
	x.old.i++
	x.new.i++
	o, n, depth := members{c: x.old}, members{c: x.new}, len(x.path)
	var passed index
	defer func() { x.keys -= passed.n }()
	for o.next() {
		o.pending = false
		x.path = append(x.path[:depth], segment{key: x.old.pos()})
		found, ok := x.member(&n, &passed)
		switch {
		case n.torn:
			return x.torn()
		case x.m.err != nil || !ok:
			return false
		case !found:
			return x.fails(keyRemoved, noValue, noValue)
		}
	}
	x.path = x.path[:depth]
	for n.next() {
		x.add(false)
		n.skip()
	}
	if o.torn || n.torn {
		return x.torn()
	}
	return x.m.err == nil
}

// add notes that there is a new member; before: an old one comes after it.
func (x *matcher) add(before bool) {
	x.added = true
	x.between = x.between || before || x.inside > 0
}

// member finds the old key at the cursor in the new object. It reports whether
// it is there, and whether the values are included.
func (x *matcher) member(n *members, passed *index) (found, ok bool) {
	keyAt := x.old.pos()
	if n.next() && x.key(keyAt, x.new.pos()) {
		n.pending = false
		return true, x.entry()
	}
	front := x.new.pos()
	hash, _ := hashText(x.old, x.seed)
	if passed.find(hash, func(at int64) bool { return x.key(keyAt, at) }) {
		if !x.entry() {
			return true, false
		}
		x.new.seek(front)
		return true, true
	}
	x.new.seek(front)
	for n.next() {
		at := x.new.pos()
		if x.key(keyAt, at) {
			n.pending = false
			x.add(true)
			return true, x.entry()
		}
		hash, _ := hashText(x.new, x.seed)
		x.new.seek(at)
		if !n.skip() || !x.remember(passed, hash, at) {
			break
		}
	}
	return false, true
}

// remember notes a new key that was passed.
func (x *matcher) remember(passed *index, hash uint64, at int64) bool {
	if x.keys++; x.keys > maxKeys {
		x.keys--
		x.m.fail(errComplex)
		return false
	}
	passed.add(hash, at)
	return true
}

// key compares an old and a new key, and goes behind them if they are equal,
// back to them otherwise.
func (x *matcher) key(oldAt, newAt int64) bool {
	x.back(oldAt, newAt)
	if x.old.peek() != '"' || x.new.peek() != '"' {
		return x.torn()
	}
	if equalText(x.old, x.new) {
		return true
	}
	x.back(oldAt, newAt)
	return false
}

// entry compares the values behind two keys.
func (x *matcher) entry() bool {
	if x.old.space() != ':' || x.new.space() != ':' {
		return x.torn()
	}
	x.old.i++
	x.new.i++
	return x.value()
}

// members goes through an object, behind its brace.
type members struct {
	c       *cursor
	pending bool // at a key that next has found already
	begun   bool
	ended   bool
	torn    bool // the object is not the one that was checked
}

// next goes to the next key, or behind the object. It stays at a key that is
// still pending.
func (m *members) next() bool {
	if m.pending || m.ended {
		return m.pending
	}
	b := m.c.space()
	if b == '}' {
		m.c.i++
		m.ended = true
		return false
	}
	if m.begun {
		if b != ',' {
			m.ended, m.torn = true, true
			return false
		}
		m.c.i++
		b = m.c.space()
	}
	m.begun = true
	m.pending = b == '"'
	if !m.pending {
		m.ended, m.torn = true, true
	}
	return m.pending
}

// skip passes the member at whose key it is.
func (m *members) skip() bool {
	m.pending = false
	if m.c.skipText() && m.c.space() == ':' {
		m.c.i++
		if m.c.skip() {
			return true
		}
	}
	m.ended, m.torn = true, true
	return false
}
