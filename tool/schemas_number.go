package tool

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

// smallDigits is how many digits an integer may have that is an int64. Each
// number is one of the two: equal numbers are the same value.
const smallDigits = 18

// decimalValue is a number that is not an integer of few digits: digits times
// ten to the exp, exactly. Its digits neither begin nor end with 0.
type decimalValue struct {
	negative bool
	digits   string
	exp      int
}

// newNumber returns what the text of a number of JSON stands for, exactly: an
// int64 or a decimalValue. Its exponent must be one of a float.
func newNumber(s string) any {
	if len(s) <= smallDigits && !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
	}
	s, negative := strings.CutPrefix(s, "-")
	exp := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err == nil { // others are of 0
			exp = e
		}
		s = s[:i]
	}
	whole, part, _ := strings.Cut(s, ".")
	digits := strings.TrimLeft(whole+part, "0")
	exp -= len(part)
	short := strings.TrimRight(digits, "0")
	exp += len(digits) - len(short)
	switch {
	case short == "":
		return int64(0)
	case exp >= 0 && len(short)+exp <= smallDigits:
		if i, err := strconv.ParseInt(short+strings.Repeat("0", exp), 10, 64); err == nil {
			if negative {
				i = -i
			}
			return i
		}
	}
	return decimalValue{negative, short, exp}
}

// decimalOf returns a number as a decimal; one without digits is 0.
func decimalOf(v any) decimalValue {
	i, ok := v.(int64)
	if !ok {
		d, _ := v.(decimalValue)
		return d
	}
	if i == 0 {
		return decimalValue{}
	}
	text, negative := strings.CutPrefix(strconv.FormatInt(i, 10), "-")
	digits := strings.TrimRight(text, "0")
	return decimalValue{negative, digits, len(text) - len(digits)}
}

func (d decimalValue) integer() bool { return d.exp >= 0 }

// String returns the number as JSON.
func (d decimalValue) String() string {
	const plain = 21 // digits that are written without an exponent
	sign := ""
	if d.negative {
		sign = "-"
	}
	point := len(d.digits) + d.exp // where the point is, in digits
	switch {
	case d.exp >= 0 && point <= plain:
		return sign + d.digits + strings.Repeat("0", d.exp)
	case d.exp < 0 && point > 0:
		return sign + d.digits[:point] + "." + d.digits[point:]
	case d.exp < 0 && point > -6:
		return sign + "0." + strings.Repeat("0", -point) + d.digits
	}
	rest := d.digits[1:]
	if rest != "" {
		rest = "." + rest
	}
	return sign + d.digits[:1] + rest + "e" + strconv.Itoa(point-1)
}

// MarshalJSON returns the number as JSON.
func (d decimalValue) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// numberText returns a number as JSON, clipped for a fault.
func numberText(v any) string {
	if i, ok := v.(int64); ok {
		return strconv.FormatInt(i, 10)
	}
	return brief(decimalOf(v).String())
}

// compare compares two numbers, exactly.
func compare(v, w any) int {
	if i, ok := v.(int64); ok {
		if k, ok := w.(int64); ok {
			switch {
			case i < k:
				return -1
			case i > k:
				return 1
			}
			return 0
		}
	}
	a, b := decimalOf(v), decimalOf(w)
	if a.sign() != b.sign() {
		return a.sign() - b.sign()
	}
	c := (len(a.digits) + a.exp) - (len(b.digits) + b.exp)
	if c == 0 {
		c = strings.Compare(a.digits, b.digits)
	}
	return c * a.sign()
}

func (d decimalValue) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// divisor is a positive number that others are held to be multiples of.
type divisor struct {
	of     uint64 // its digits
	exp    int
	number any
}

// newDivisor returns false where the number is not positive, or has more than
// 18 digits: the division is by one word.
func newDivisor(v any) (divisor, bool) {
	d := decimalOf(v)
	if d.sign() <= 0 || len(d.digits) > smallDigits {
		return divisor{}, false
	}
	of, err := strconv.ParseUint(d.digits, 10, 64)
	return divisor{of, d.exp, v}, err == nil
}

// divides reports whether a number is a multiple, exactly. It takes a step for
// each digit, and for each power of ten between the two.
func (m divisor) divides(v any) bool {
	d := decimalOf(v)
	if d.digits == "" {
		return true
	}
	if d.exp < m.exp {
		return false // its last digit is not 0
	}
	if m.of == 1 {
		return true
	}
	rest := uint64(0)
	next := func(digit uint64) {
		high, low := bits.Mul64(rest, 10)
		low, carry := bits.Add64(low, digit, 0)
		rest = bits.Rem64(high+carry, low, m.of)
	}
	for i := range len(d.digits) {
		next(uint64(d.digits[i] - '0'))
	}
	for range d.exp - m.exp {
		next(0)
	}
	return rest == 0
}

// identityOfNumber appends what is the same for equal numbers only.
func (j *judge) identityOfNumber(b []byte, v any) []byte {
	if i, ok := v.(int64); ok {
		return binary.AppendVarint(append(b, '+'), i)
	}
	d := decimalOf(v)
	kind := byte('.')
	if d.negative {
		kind = '-'
	}
	return j.identityOf(binary.AppendVarint(append(b, kind), int64(d.exp)), d.digits)
}
