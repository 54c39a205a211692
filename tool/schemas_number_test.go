package tool

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

// anyNumber draws the text of a number of JSON, often near the ends of integers.
func anyNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom([]string{
			"0", "1", "10", "3", "7", "21", "999999999999999999", "1000000000000000000", "9007199254740992", "9007199254740993",
			"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "18446744073709551617",
		}).Draw(t, "digits")
		if rapid.Bool().Draw(t, "more digits") {
			s = fmt.Sprint(rapid.Int64Range(1, 1<<62).Draw(t, "head")) + s
		}
		if rapid.Bool().Draw(t, "point") {
			s += "." + rapid.StringMatching(`[0-9]{1,30}`).Draw(t, "part")
		}
		if rapid.Bool().Draw(t, "exponent") {
			s += fmt.Sprintf("e%+d", rapid.IntRange(-40, 40).Draw(t, "e"))
		}
		return rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + s
	})
}

func ratOf(t *rapid.T, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("no number: %s", s)
	}
	return r
}

// timesTen is the text of a number times ten to the power n.
func timesTen(s string, n int) string {
	digits, exponent, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%se%+d", digits, e+n)
}

// Numbers are compared, divided, identified and written as rational numbers are.
func TestNumbersAreExact(t *testing.T) {
	multiples := 0
	enough.Check(t, func(t *rapid.T) {
		x, y := anyNumber().Draw(t, "x"), anyNumber().Draw(t, "y")
		if rapid.Bool().Draw(t, "multiple") {
			x = timesTen(y, rapid.IntRange(0, 40).Draw(t, "times"))
		}
		v, w := newNumber(x), newNumber(y)
		a, b := ratOf(t, x), ratOf(t, y)
		if got, want := max(-1, min(1, compare(v, w))), a.Cmp(b); got != want {
			t.Fatalf("%s and %s: %d, want %d", x, y, got, want)
		}
		j := &judge{most: maxSteps}
		if same := bytes.Equal(j.identity(nil, v), j.identity(nil, w)); same != (a.Cmp(b) == 0) {
			t.Fatalf("%s and %s: same %t", x, y, same)
		}
		if got := typeOf(v) == "integer"; got != a.IsInt() {
			t.Fatalf("%s: integer %t", x, got)
		}
		if text := fmt.Sprint(v); ratOf(t, text).Cmp(a) != 0 || newNumber(text) != v {
			t.Fatalf("%s was written as %s", x, text)
		}
		if m, ok := newDivisor(w); ok {
			want := new(big.Rat).Quo(a, b).IsInt()
			if got := m.divides(v); got != want {
				t.Fatalf("%s is a multiple of %s: %t", x, y, got)
			}
			if want {
				multiples++
			}
		}
	}, func() string {
		if multiples == 0 {
			return "no number was a multiple"
		}
		return ""
	})
}
