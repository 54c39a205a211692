package additive

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeros marks the bytes of a word that are zero, by their high bits. Bytes
// above a zero may be marked too; the lowest mark is right.
func zeros(w uint64) uint64 { return (w - ones) & ^w & highs }

// plain returns how many bytes in front are printable ASCII that a JSON string
// has as they are.
func plain(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		m := zeros(w^(ones*'"')) | zeros(w^(ones*'\\')) | (w-ones*' ')&^w&highs | w&highs
		if m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < 0x80 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// unquoted returns how many bytes in front are neither a quote nor a backslash.
func unquoted(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := zeros(w^(ones*'"')) | zeros(w^(ones*'\\')); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}
