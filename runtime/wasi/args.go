package wasi

import "context"

// argsGet writes the arguments, see [writeStrings].
func argsGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	return writeStrings(m, p.args, a[0], a[1])
}

func argsSizesGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	return writeSizes(m, p.args, a[0], a[1])
}

// environGet writes the environment, see [writeStrings].
func environGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	return writeStrings(m, p.env, a[0], a[1])
}

func environSizesGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	return writeSizes(m, p.env, a[0], a[1])
}

// writeStrings writes a list of strings: their addresses at pointers, and at
// text the strings themselves, each ended by a NUL byte.
//
//	pointers                 text
//	 +--------+--------+      +---+---+---+---+---+---+
//	 | text   | text+3 |      | a | b | 0 | c | d | 0 |
//	 +--------+--------+      +---+---+---+---+---+---+
//	  u32      u32
func writeStrings(m memory, list []string, pointers, text uint64) errno {
	pointers, text = low(pointers), low(text)
	heads, ok := m.bytes(pointers, 4*uint64(len(list)))
	if !ok {
		return eFAULT
	}
	body, ok := m.bytes(text, textSize(list))
	if !ok {
		return eFAULT
	}
	for i, s := range list {
		le.PutUint32(heads[4*i:], uint32(text))
		n := copy(body, s)
		body[n] = 0
		body, text = body[n+1:], text+uint64(n)+1
	}
	return success
}

func writeSizes(m memory, list []string, count, size uint64) errno {
	c, ok := m.bytes(low(count), 4)
	if !ok {
		return eFAULT
	}
	s, ok := m.bytes(low(size), 4)
	if !ok {
		return eFAULT
	}
	le.PutUint32(c, uint32(len(list)))
	le.PutUint32(s, uint32(textSize(list)))
	return success
}

func textSize(list []string) uint64 {
	var n uint64
	for _, s := range list {
		n += uint64(len(s)) + 1
	}
	return n
}
