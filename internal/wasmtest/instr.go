package wasmtest

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
)

// Seq joins instructions.
func Seq(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
