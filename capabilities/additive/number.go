package additive

import (
	"bytes"
	"math/big"
)

const (
	maxNumber   = 64 << 10 // bytes of a number whose value is looked at
	maxExponent = 1 << 10  // digits of an exponent
)

// scanNumber reads a number (RFC 8259) and reports whether it is one.
func (c *cursor) scanNumber() bool {
	if c.peek() == '-' {
		c.i++
	}
	if c.peek() == '0' {
		c.i++
	} else if !c.digits() {
		return false
	}
	if c.peek() == '.' {
		c.i++
		if !c.digits() {
			return false
		}
	}
	if c.peek()|0x20 == 'e' {
		c.i++
		if b := c.peek(); b == '+' || b == '-' {
			c.i++
		}
		return c.digits()
	}
	return true
}

// digits passes digits, at least one.
func (c *cursor) digits() bool {
	if b := c.peek(); b < '0' || b > '9' {
		return false
	}
	for {
		for c.i < len(c.buf) && '0' <= c.buf[c.i] && c.buf[c.i] <= '9' {
			c.i++
		}
		if c.i < len(c.buf) || !c.fill() {
			return true
		}
	}
}

// rawNumber reads a number as it is written, nil if that is too long to be
// looked at.
func (c *cursor) rawNumber() []byte {
	var out []byte
	for b := c.peek(); isNumeric(b); b = c.peek() {
		if len(out) <= maxNumber {
			out = append(out, b)
		}
		c.i++
	}
	if len(out) > maxNumber {
		return nil
	}
	return out
}

func isNumeric(b byte) bool {
	return '0' <= b && b <= '9' || b == '-' || b == '+' || b == '.' || b|0x20 == 'e'
}

// decimal is the value 0.DIGITS times ten to the power of shift plus exponent.
// Digits neither begin nor end with a zero; zero has none.
type decimal struct {
	negative bool
	digits   []byte
	shift    int64
	exponent []byte // as written: a sign, perhaps, and digits
}

func parseDecimal(s []byte) decimal {
	d := decimal{negative: len(s) > 0 && s[0] == '-'}
	if d.negative {
		s = s[1:]
	}
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		s, d.exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := bytes.Cut(s, []byte("."))
	digits := append(append(make([]byte, 0, len(s)), whole...), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	d.shift = int64(len(whole) - (len(digits) - len(significant)))
	d.digits = bytes.TrimRight(significant, "0")
	return d
}

// equalNumber reports whether two numbers have the same decimal value; known
// is false when that would take too much.
func equalNumber(a, b []byte) (equal, known bool) {
	if bytes.Equal(a, b) {
		return true, true
	}
	x, y := parseDecimal(a), parseDecimal(b)
	switch {
	case len(x.digits) == 0 || len(y.digits) == 0:
		return len(x.digits) == len(y.digits), true // -0 is 0, and so is 0e9
	case x.negative != y.negative || !bytes.Equal(x.digits, y.digits):
		return false, true
	}
	p, ok := x.power()
	q, also := y.power()
	if !ok || !also {
		return false, false
	}
	return p.Cmp(q) == 0, true
}

// power returns the power of ten in all, and whether it can be told.
func (d decimal) power() (*big.Int, bool) {
	exp := bytes.TrimPrefix(d.exponent, []byte("+"))
	sign := exp[:len(exp)-len(bytes.TrimPrefix(exp, []byte("-")))]
	exp = bytes.TrimLeft(exp[len(sign):], "0")
	if len(exp) > maxExponent {
		return nil, false
	}
	p := new(big.Int)
	if len(exp) > 0 {
		if _, ok := p.SetString(string(sign)+string(exp), 10); !ok {
			return nil, false
		}
	}
	return p.Add(p, big.NewInt(d.shift)), true
}
