package wasmbin

// effect has by how much an instruction of one byte makes the operand stack
// higher. Blocks, calls and prefixes are counted apart.
var effect = func() (t [256]int8) {
	set := func(n int8, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = n
		}
	}
	set(-1, opBrIf, opBrTable)
	set(-1, opDrop, opDrop)
	set(-2, opSelect, opSelectTyped)
	set(1, opLocalGet, opLocalGet)
	set(-1, opLocalSet, opLocalSet)
	set(1, opGlobalGet, opGlobalGet)
	set(-1, opGlobalSet, opGlobalSet)
	set(-2, 0x26, 0x26)         // table.set
	set(-2, opFirstStore, 0x3e) // stores
	set(1, 0x3f, 0x3f)          // memory.size
	set(1, 0x41, 0x44)          // constants
	set(-1, 0x46, 0x4f)         // comparisons
	set(-1, 0x51, 0x66)         // comparisons
	set(-1, 0x6a, 0x78)         // i32
	set(-1, 0x7c, 0x8a)         // i64
	set(-1, 0x92, 0x98)         // f32
	set(-1, 0xa0, 0xa6)         // f64
	set(1, 0xd0, 0xd0)          // ref.null
	set(1, opRefFunc, opRefFunc)
	return t
}()

// bulkEffect is effect for the instructions after 0xfc.
var bulkEffect = [len(bulk)]int8{8: -3, 10: -3, 11: -3, 12: -3, 14: -3, 15: -1, 16: 1, 17: -3}

// vectorEffect is effect for the instructions after 0xfd.
var vectorEffect = func() (t [256]int8) {
	set := func(n int8, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = n
		}
	}
	set(-1, 13, 14) // shuffles
	set(-1, 35, 76) // comparisons
	set(-1, 78, 81) // and, or, xor
	set(-1, 84, 87) // loads of lanes
	set(-2, 88, 91) // stores of lanes
	set(-2, 82, 82) // bitselect
	set(-2, 11, 11) // store
	set(1, 12, 12)  // v128.const
	set(-1, 0x65, 0xf7)
	for _, op := range []byte{ // instructions of one operand among those
		0x67, 0x68, 0x69, 0x6a, 0x74, 0x75, 0x7a, 0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x83, 0x84,
		0x87, 0x88, 0x89, 0x8a, 0x94, 0xa0, 0xa1, 0xa3, 0xa4, 0xa7, 0xa8, 0xa9, 0xaa, 0xc0, 0xc1,
		0xc3, 0xc4, 0xc7, 0xc8, 0xc9, 0xca, 0xe0, 0xe1, 0xe3, 0xec, 0xed, 0xef,
	} {
		t[op] = 0
	}
	for _, op := range []byte{23, 26, 28, 30, 32, 34} { // replaced lanes
		t[op] = -1
	}
	return t
}()

// What instructions weigh that take more than a weight of 1.
const (
	weightCall         = 4
	weightCallIndirect = 28
	weightVector       = 5
	weightAccess       = 9 // more, where the address must be checked
)

// weight is about how many times the memory of an i32.const an instruction of
// one byte needs in the compiler.
var weight = func() (t [256]uint8) {
	set := func(n uint8, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = n
		}
	}
	set(1, 0, 255)
	set(10, opTableGet, 0x26) // table.get, table.set
	set(7, opMemoryGrow, opMemoryGrow)
	set(11, 0x6d, 0x70) // i32 divisions
	set(11, 0x7f, 0x82) // i64 divisions
	set(6, 0x96, 0x98)  // minimum, maximum, copysign
	set(6, 0xa4, 0xa6)  // the same
	set(17, 0xa8, 0xab) // truncations
	set(17, 0xae, 0xb1) // truncations
	set(6, 0xb2, 0xbf)  // conversions
	set(8, opRefFunc, opRefFunc)
	return t
}()

// bulkWeight is weight for the instructions after 0xfc.
var bulkWeight = [len(bulk)]uint8{
	11, 11, 11, 11, 11, 11, 11, 11,
	34, 7, 32, 60, 46, 7, 42, 8, 3, 60,
}
