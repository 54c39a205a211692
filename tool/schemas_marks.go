package tool

// marks are the members of an object or the items of a list that some rule has
// judged, for unevaluatedProperties and unevaluatedItems. Nil marks are not kept.
type marks struct {
	all  bool
	bits []uint64 // by index of the member or item
}

// room makes marks for n members or items, and reports whether the steps suffice.
func (j *judge) room(m *marks, n int) bool {
	if m == nil || m.bits != nil {
		return true
	}
	if !j.spend(n/64 + 1) {
		return false
	}
	m.bits = make([]uint64, n/64+1)
	return true
}

// note marks one; there must be room.
func (m *marks) note(i int) {
	if m != nil {
		m.bits[i/64] |= 1 << (i % 64)
	}
}

// first marks the first n of so many.
func (j *judge) first(m *marks, n, of int) bool {
	if m == nil || n == 0 {
		return true
	}
	if !j.room(m, of) || !j.spend(n) {
		return false
	}
	for i := range n {
		m.note(i)
	}
	return true
}

// every marks all there are.
func (m *marks) every() {
	if m != nil {
		m.all = true
	}
}

// unseen judges those of n that are not marked, and marks them.
func (j *judge) unseen(m *marks, n int, fits func(i int) bool) bool {
	if m.all {
		return true
	}
	for i := range n {
		if !j.spend(1) {
			return false
		}
		marked := m.bits != nil && m.bits[i/64]&(1<<(i%64)) != 0
		if !marked && !fits(i) {
			return false
		}
	}
	m.every()
	return true
}

// merge adds marks to those of the rule that led here, and reports whether the
// steps suffice.
func (j *judge) merge(to, from *marks) bool {
	if to == nil || from == nil {
		return true
	}
	to.all = to.all || from.all
	if from.bits == nil || to.all {
		return true
	}
	if !j.spend(len(from.bits)) {
		return false
	}
	if to.bits == nil {
		to.bits = from.bits // of a rule that has ended
		return true
	}
	for i, b := range from.bits {
		to.bits[i] |= b
	}
	return true
}
