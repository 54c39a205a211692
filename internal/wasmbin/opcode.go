package wasmbin

// Instructions that the walker looks for (5.4).
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opFirstLoad    = 0x28
	opFirstStore   = 0x36
	opLastStore    = 0x3e
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32GeS       = 0x4e
	opI32LtU       = 0x49
	opI32Shl       = 0x74
	opI32LeU       = 0x4d
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI64GeS       = 0x59
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad // of an i32
	opI32FromF32   = 0xbc // these four keep the bits
	opI64FromF64   = 0xbd
	opF32FromI32   = 0xbe
	opF64FromI64   = 0xbf
	opRefFunc      = 0xd2
	opBulk         = 0xfc // prefix of saturating conversions, bulk memory and tables
	opVector       = 0xfd // prefix of vector instructions
)

const vectorOr = 80 // after opVector

// immediate says what follows an opcode.
type immediate byte

const (
	unknown   immediate = iota
	none                // nothing
	index               // a number
	indices             // two numbers, memory arguments among them
	zero                // a reserved zero byte
	numZero             // a number and a reserved zero byte
	twoZeros            // two reserved zero bytes
	constI32            // a signed number of 32 bits
	constI64            // a signed number of 64 bits
	bytes4              // four bytes
	bytes8              // eight bytes
	bytes16             // sixteen bytes
	lane                // one byte
	indexLane           // a memory argument and one byte
	reference           // a reference type
)

// plain has the immediates of the instructions of one byte. Blocks, br_table,
// the typed select and the prefixes are read apart.
var plain = func() (t [256]immediate) {
	set := func(imm immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = imm
		}
	}
	set(none, 0x00, 0x01)  // unreachable, nop
	set(index, 0x0c, 0x0d) // br, br_if
	set(none, 0x0f, 0x0f)  // return
	set(index, opCall, opCall)
	set(indices, opCallIndirect, opCallIndirect)
	set(none, 0x1a, 0x1b)     // drop, select
	set(index, 0x20, 0x26)    // locals, globals, table.get, table.set
	set(indices, 0x28, 0x3e)  // loads and stores
	set(zero, 0x3f, 0x40)     // memory.size, memory.grow
	set(constI32, 0x41, 0x41) // i32.const
	set(constI64, 0x42, 0x42) // i64.const
	set(bytes4, 0x43, 0x43)   // f32.const
	set(bytes8, 0x44, 0x44)   // f64.const
	set(none, 0x45, 0xc4)     // numeric
	set(reference, 0xd0, 0xd0)
	set(none, 0xd1, 0xd1)  // ref.is_null
	set(index, 0xd2, 0xd2) // ref.func
	return t
}()

// bulk has the immediates of the instructions after 0xfc.
var bulk = [...]immediate{
	none, none, none, none, none, none, none, none, // truncations that saturate
	numZero,  // memory.init
	index,    // data.drop
	twoZeros, // memory.copy
	zero,     // memory.fill
	indices,  // table.init
	index,    // elem.drop
	indices,  // table.copy
	index,    // table.grow
	index,    // table.size
	index,    // table.fill
}

// vector has the immediates of the instructions after 0xfd.
var vector = func() (t [256]immediate) {
	for op := range t {
		t[op] = none
	}
	set := func(imm immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = imm
		}
	}
	set(indices, 0, 11)    // loads and stores
	set(bytes16, 12, 13)   // v128.const, i8x16.shuffle
	set(lane, 21, 34)      // lanes
	set(indexLane, 84, 91) // loads and stores of lanes
	set(indices, 92, 93)   // loads with zeros
	for _, op := range []byte{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6,
		0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[op] = unknown
	}
	return t
}()

// walk reads the instructions of a function body up to its end. visit is
// called after each with where it begins, its opcode and, after a prefix, its
// number.
func walk(r *reader, visit func(start int, op byte, sub uint32)) {
	depth := 1
	for depth > 0 && r.err == nil {
		start, sub := r.pos, uint32(0)
		op := r.byte()
		switch op {
		case opBlock, opLoop, opIf:
			blockType(r)
			depth++
			r.costly("nested blocks", uint64(depth), maxDepth)
		case opElse:
		case opEnd:
			depth--
		case opBrTable:
			for range r.count("branch targets", maxFuncs) {
				if r.u32(); r.err != nil {
					return
				}
			}
			r.u32()
		case opSelectTyped:
			if n := r.u32(); n != 1 {
				r.failf("a select of %d values", n)
			}
			valueType(r)
		case opBulk:
			sub = prefixed(r, op, bulk[:])
		case opVector:
			sub = prefixed(r, op, vector[:])
		default:
			skip(r, plain[op], op, 0)
		}
		if r.err == nil {
			visit(start, op, sub)
		}
	}
	if r.err == nil && r.left() > 0 {
		r.fail("instructions after the end of a function")
	}
}

// prefixed reads the number after a prefix and returns it. Only its shortest form is
// accepted: engines that read the number as one byte would take a longer one
// for other instructions than those that are walked here.
func prefixed(r *reader, prefix byte, table []immediate) uint32 {
	start := r.pos
	op := r.u32()
	long := r.pos - start
	if op >= 0x80 {
		long--
	}
	if r.err == nil && (long != 1 || uint64(op) >= uint64(len(table))) {
		r.failf("instruction %#02x %d is unknown, or is not in its shortest form", prefix, op)
	}
	if r.err != nil {
		return 0
	}
	skip(r, table[op], prefix, op)
	return op
}

// skip reads what follows an opcode.
func skip(r *reader, imm immediate, op byte, sub uint32) {
	switch imm {
	case unknown:
		r.failf("instruction %#02x %d is not part of WebAssembly 2.0", op, sub)
	case none:
	case index:
		r.u32()
	case indices:
		r.u32()
		r.u32()
	case zero:
		reserved(r)
	case numZero:
		r.u32()
		reserved(r)
	case twoZeros:
		reserved(r)
		reserved(r)
	case constI32:
		r.signed(32)
	case constI64:
		r.signed(64)
	case bytes4:
		r.take(4)
	case bytes8:
		r.take(8)
	case bytes16:
		r.take(16)
	case lane:
		r.byte()
	case indexLane:
		r.u32()
		r.u32()
		r.byte()
	case reference:
		refType(r)
	}
}

func reserved(r *reader) {
	if c := r.byte(); c != 0 {
		r.failf("a reserved byte is %#02x", c)
	}
}

// blockType reads the type of a block (5.4.1): nothing, a value type or the
// index of a function type.
func blockType(r *reader) {
	switch r.peek() {
	case 0x40:
		r.byte()
	case byte(I32), byte(I64), byte(F32), byte(F64), byte(V128), byte(FuncRef), byte(ExternRef):
		r.byte()
	default:
		if i := r.signed(33); i < 0 {
			r.fail("a block type is unknown")
		}
	}
}
