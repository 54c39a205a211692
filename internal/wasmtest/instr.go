package wasmtest

import "bytes"

// Uint returns v in unsigned LEB128.
func Uint(v uint64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Int returns v in signed LEB128.
func Int(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// I32Const returns i32.const v.
func I32Const(v int32) []byte { return append([]byte{0x41}, Int(int64(v))...) }

// I64Const returns i64.const v.
func I64Const(v int64) []byte { return append([]byte{0x42}, Int(v)...) }

// Call returns call f.
func Call(f int) []byte { return append([]byte{0x10}, Uint(uint64(f))...) }

// LocalGet returns local.get i.
func LocalGet(i int) []byte { return append([]byte{0x20}, Uint(uint64(i))...) }

// Instructions without operands, and some with fixed ones.
var (
	Unreachable = []byte{0x00}
	Drop        = []byte{0x1a}
	Forever     = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // loop; br 0; end
	MemoryGrow  = []byte{0x40, 0x00}
	MemoryFill  = []byte{0xfc, 0x0b, 0x00}
	MemoryCopy  = []byte{0xfc, 0x0a, 0x00, 0x00}
	I32Load     = []byte{0x28, 0x02, 0x00}
	I32Add      = []byte{0x6a}
	Block       = []byte{0x02, 0x40} // without a type, as the next two
	Loop        = []byte{0x03, 0x40}
	If          = []byte{0x04, 0x40}
	End         = []byte{0x0b}
)

// Seq joins instructions.
func Seq(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// LocalSet returns local.set i.
func LocalSet(i int) []byte { return append([]byte{0x21}, Uint(uint64(i))...) }

// BrIf returns br_if label.
func BrIf(label int) []byte { return append([]byte{0x0d}, Uint(uint64(label))...) }

// BrTable returns a br_table of n targets and a default one, all of them the
// innermost block.
func BrTable(n int) []byte {
	return append(append([]byte{0x0e}, Uint(uint64(n))...), make([]byte, n+1)...)
}

// Repeat returns instructions n times.
func Repeat(n int, parts ...[]byte) []byte { return bytes.Repeat(Seq(parts...), n) }
