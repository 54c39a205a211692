package additive

// index finds the keys of an object by their hashes.
type index struct {
	slots []slot // a power of two of them, or none
	n     int
}

type slot struct {
	hash uint64
	at   int64 // where the key is, plus one; 0: empty
}

func (x *index) add(hash uint64, at int64) {
	if x.n >= len(x.slots)/4*3 {
		old := x.slots
		x.slots = make([]slot, max(8, 2*len(old)))
		for _, s := range old {
			if s.at != 0 {
				x.put(s)
			}
		}
	}
	x.put(slot{hash, at + 1})
	x.n++
}

func (x *index) put(s slot) {
	i := int(s.hash) & (len(x.slots) - 1)
	for x.slots[i].at != 0 {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = s
}

// find returns the place of a key of that hash for which is returns true.
func (x *index) find(hash uint64, is func(at int64) bool) bool {
	if x.n == 0 {
		return false
	}
	for i := int(hash) & (len(x.slots) - 1); x.slots[i].at != 0; i = (i + 1) & (len(x.slots) - 1) {
		if s := x.slots[i]; s.hash == hash && is(s.at-1) {
			return true
		}
	}
	return false
}
