package kv

import (
	"errors"
	"math"
	"math/big"
	"strconv"
)

// The errors of numbers, matched with errors.Is.
var (
	// ErrNotNumber: the value is no whole number of 64 bits in decimal digits.
	ErrNotNumber = errors.New("value is no number")
	// ErrOverflow: the sum does not fit into 64 bits.
	ErrOverflow = errors.New("sum does not fit into 64 bits")
)

// Number returns the number that a value holds: a sign where it is below 0, and
// digits without zeros in front, so that each number has one value.
func Number(value []byte) (int64, error) {
	const longest = 20 // of -9223372036854775808
	if len(value) > longest {
		return 0, ErrNotNumber
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(value) {
		return 0, ErrNotNumber
	}
	return n, nil
}

// sum returns the number that a value holds, with by added; a value that is not
// there counts as 0.
func sum(value []byte, ok bool, by int64) (int64, error) {
	var n int64
	if ok {
		var err error
		if n, err = Number(value); err != nil {
			return 0, err
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		return 0, ErrOverflow
	}
	return n + by, nil
}

// difference returns by how much a number grew, which may take 65 bits.
func difference(from, to int64) string {
	return new(big.Int).Sub(big.NewInt(to), big.NewInt(from)).String()
}
