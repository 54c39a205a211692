package tool

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number reads a number, exactly; what is out of the range of floats is an error.
func (r *strictReader) number(at *spot) (any, *fault) {
	start := r.at
	for r.at < len(r.in) && strings.IndexByte("+-.0123456789eE", r.in[r.at]) >= 0 {
		r.at++
	}
	s := string(r.in[start:r.at])
	if !numeric(s) {
		return nil, notJSON
	}
	r.out = append(r.out, s...)
	if len(s) <= smallDigits && !strings.ContainsAny(s, ".eE") {
		return newNumber(s), nil
	}
	digits, tiny := extent(s)
	if digits > exactDigits {
		if r.long++; r.long > maxLongNumbers {
			return nil, &fault{at.pointer(), fmt.Sprintf("more than %d numbers of more than %d digits", maxLongNumbers, exactDigits), "send them as text, or shorter"}
		}
	}
	if !tiny {
		if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) {
			return newNumber(s), nil
		}
	}
	return nil, &fault{at.pointer(), "a number out of the range of 64-bit floats", "send it as text"}
}

// numeric reports whether a text is a number of JSON.
func numeric(s string) bool {
	digits := func() bool {
		rest := strings.TrimLeft(s, "0123456789")
		some := len(rest) < len(s)
		s = rest
		return some
	}
	s = strings.TrimPrefix(s, "-")
	if zero := strings.HasPrefix(s, "0"); zero {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if part, ok := strings.CutPrefix(s, "."); ok {
		if s = part; !digits() {
			return false
		}
	}
	if s != "" && s[0]|0x20 == 'e' {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// extent returns how many significant digits a number has, and whether it is
// nearer to zero than floats are exact.
func extent(s string) (digits int, tiny bool) {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, part, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	whole = strings.TrimLeft(whole, "0")
	magnitude := len(whole)
	if whole == "" {
		rest := strings.TrimLeft(part, "0")
		magnitude = len(rest) - len(part)
		part = rest
	}
	if digits = len(whole) + len(part); digits == 0 {
		return 0, false
	}
	e, err := strconv.Atoi(exponent)
	if err != nil && exponent != "" {
		e = math.MaxInt32 // ParseFloat says so, too
		if exponent[0] == '-' {
			e = math.MinInt32
		}
	}
	return digits, magnitude+e < -306
}
