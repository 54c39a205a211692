package wasmbin

import (
	"bytes"
	"testing"
	"time"
)

// places plans the guards of a function body.
func places(t *testing.T, code []byte) []int {
	t.Helper()
	r := &reader{b: code}
	p := plan(r)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return p
}

func TestPlan(t *testing.T) {
	nops := func(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }
	calls := func(n int) []byte { return bytes.Repeat([]byte{0x10, 0}, n) }
	fills := func(n int) []byte { return bytes.Repeat([]byte{0xfc, 11, 0}, n) }
	row := weightMost / weightCall
	for _, tt := range []struct {
		name string
		code []byte
		want []int
	}{
		{"small", cat(nops(weightCall-1), []byte{0x0b}), nil},
		{"large", cat(nops(weightCall), []byte{0x0b}), []int{0}},
		{"one fill", cat(fills(1), []byte{0x0b}), []int{0}},
		{"four fills", cat(fills(4), []byte{0x0b}), []int{0}},
		{"five fills", cat(fills(5), []byte{0x0b}), []int{0, 12}},
		{"nine fills", cat(fills(9), []byte{0x0b}), []int{0, 12, 24}},
		{"a row of calls", cat(calls(row), []byte{0x0b}), []int{0}},
		{"a longer row", cat(calls(2*row+1), []byte{0x0b}), []int{0, 2 * row, 4 * row}},
		{"plain", cat(nops(weightMost+10), []byte{0x0b}), []int{0, weightMost}},
		{"truncation is not bulk", []byte{0xfc, 0, 0xfc, 7, 0x0b}, nil},
		{"table.size is not bulk", []byte{0xfc, 16, 0, 0x0b}, nil},
		// A guard in an arm is no guard for those who take the other.
		{"arm", cat([]byte{0x04, 0x40}, fills(4), []byte{0x0b}, fills(1), []byte{0x0b}), []int{0, 11, 15}},
		{"both arms", cat([]byte{0x04, 0x40}, fills(2), []byte{0x05}, fills(2), []byte{0x0b}, fills(1), []byte{0x0b}), []int{0, 16}},
		{"block", cat([]byte{0x02, 0x40}, fills(3), []byte{0x0b}, fills(1), []byte{0x0b}), []int{0, 12}},
		{"loop first", cat([]byte{0x03, 0x40}, fills(3), []byte{0x0b}, fills(1), []byte{0x0b}), []int(nil)},
		{"loop", cat(fills(3), []byte{0x03, 0x40}, fills(3), []byte{0x0b}, fills(2), []byte{0x0b}), []int{0, 24}},
	} {
		if got := places(t, tt.code); !equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestGuardInterruptsRows runs code without loops and recursion that would
// fill tens of gigabytes of memory, for some seconds, before it looks up.
func TestGuardInterruptsRows(t *testing.T) {
	fill := []byte{0x41, 0, 0x41, 1, 0x41, 0x80, 0x80, 0x80, 0x10, 0xfc, 11, 0} // 32 MiB
	b := mod(
		sec(sectionType, vec(functype("", ""))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionMemory, vec([]byte{0, 0x80, 4})),
		sec(sectionExport, vec(cat(str("fill"), []byte{0, 0}))),
		sec(sectionCode, vec(fn(cat(bytes.Repeat(fill, 3000), []byte{0x0b})...))),
	)
	guarded, err := Guard(b, roomy)
	if err != nil {
		t.Fatal(err)
	}
	took, err := interrupted(t, guarded, "fill")
	if err == nil || took > 5*time.Second {
		t.Errorf("took %v: %v", took, err)
	}
}
