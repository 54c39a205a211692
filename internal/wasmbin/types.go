package wasmbin

func valueType(r *reader) ValueType {
	switch t := ValueType(r.byte()); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return t
	default:
		r.failf("value type %#02x is unknown", byte(t))
		return 0
	}
}

func refType(r *reader) ValueType {
	switch t := ValueType(r.byte()); t {
	case FuncRef, ExternRef:
		return t
	default:
		r.failf("reference type %#02x is unknown", byte(t))
		return 0
	}
}

func mutable(r *reader) bool {
	switch m := r.byte(); m {
	case 0, 1:
		return m == 1
	default:
		r.failf("mutability %#02x is unknown", m)
		return false
	}
}

// limits reads the limits of a table or memory (5.3.7). Shared memories and
// 64-bit ones are not part of the core specification 2.0.
func limits(r *reader) Limits {
	var l Limits
	switch flag := r.byte(); flag {
	case 0:
		l.Min = r.u32()
	case 1:
		l.Min, l.Max, l.HasMax = r.u32(), r.u32(), true
	default:
		r.failf("limits of kind %#02x are not part of WebAssembly 2.0", flag)
	}
	if l.HasMax && l.Max < l.Min && r.err == nil {
		r.fail("a maximum is below its minimum")
	}
	return l
}

// memoryPages is how many pages an address of 32 bits reaches.
const memoryPages = 1 << 16

func memoryLimits(r *reader) Limits {
	l := limits(r)
	r.limit("memory pages", uint64(l.Min), memoryPages)
	if l.HasMax {
		r.limit("memory pages", uint64(l.Max), memoryPages)
	}
	return l
}

// constant reads a constant expression (3.3.10, with the arithmetic of
// extended constant expressions) up to and with its end.
func constant(r *reader) { constantParts(r, func(int, byte) {}) }

// constantParts is constant, and calls visit after each instruction with where
// it begins and its opcode.
func constantParts(r *reader, visit func(start int, op byte)) {
	for r.err == nil {
		start := r.pos
		op := r.byte()
		switch op {
		case opEnd:
			return
		case 0x41: // i32.const
			r.signed(32)
		case 0x42: // i64.const
			r.signed(64)
		case 0x43: // f32.const
			r.take(4)
		case 0x44: // f64.const
			r.take(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.u32()
		case 0xd0: // ref.null
			refType(r)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // i32 and i64 add, sub, mul
		case 0xfd: // v128.const
			if sub := r.u32(); sub != 12 {
				r.failf("vector instruction %d in a constant expression", sub)
			}
			r.take(16)
		default:
			r.failf("instruction %#02x in a constant expression", op)
		}
		if r.err == nil {
			visit(start, op)
		}
	}
}

// element reads an element segment (5.5.12). The three bits of its flag say
// that it is not active, that it names a table or is declarative, and that its
// elements are expressions. It returns how many there are.
func element(r *reader) uint64 {
	return elementParts(r, func() { constant(r) }, func() { r.u32() })
}

// elementParts is element; constant reads a constant expression, and function
// the index of a function.
func elementParts(r *reader, constant, function func()) uint64 {
	flag := r.u32()
	if flag > 7 {
		r.failf("element segments of kind %d are unknown", flag)
	}
	active, explicit, expressions := flag&1 == 0, flag&2 != 0, flag&4 != 0
	if active {
		if explicit {
			r.u32()
		}
		constant()
	}
	if !active || explicit {
		if expressions {
			refType(r)
		} else if kind := r.byte(); kind != 0 {
			r.failf("elements of kind %d are unknown", kind)
		}
	}
	n := r.count("elements", maxElements)
	for range n {
		if expressions {
			constant()
		} else {
			function()
		}
		if r.err != nil {
			return 0
		}
	}
	return uint64(n)
}

// nameSection reads the name section (appendix, 7.4.1), so that readers of it
// after this one meet no count that is larger than what is there.
func nameSection(r *reader) {
	total := 0
	for r.left() > 0 && r.err == nil {
		id := r.byte()
		s := r.sub(uint64(r.u32()))
		switch id {
		case 0:
			s.name()
		case 1:
			total += nameMap(s)
		case 2:
			for range s.count("functions with named locals", maxFuncs) {
				s.u32()
				if total += nameMap(s); s.err != nil {
					break
				}
			}
		default:
			continue
		}
		if s.err == nil && s.left() > 0 {
			s.fail("names have bytes left over")
		}
		if r.err == nil {
			r.err = s.err
		}
		r.limit("names", uint64(total), maxNames)
	}
}

func nameMap(r *reader) int {
	n := r.count("names", maxNames)
	for range n {
		r.u32()
		if r.name(); r.err != nil {
			return 0
		}
	}
	return n
}
