package wasmbin

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// places plans the guards of a function body.
func places(t *testing.T, code []byte) []int {
	t.Helper()
	r := &reader{b: code}
	p := plan(r, standard)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return p
}

func TestPlan(t *testing.T) {
	nops := func(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }
	calls := func(n int) []byte { return bytes.Repeat([]byte{0x10, 0}, n) }
	fills := func(n int) []byte { return bytes.Repeat([]byte{0xfc, 11, 0}, n) }
	row := standard.most / standard.call
	for _, tt := range []struct {
		name string
		code []byte
		want []int
	}{
		{"small", cat(nops(standard.call-1), []byte{0x0b}), nil},
		{"large", cat(nops(standard.call), []byte{0x0b}), []int{0}},
		{"one fill", cat(fills(1), []byte{0x0b}), []int{0}},
		{"four fills", cat(fills(4), []byte{0x0b}), []int{0}},
		{"five fills", cat(fills(5), []byte{0x0b}), []int{0, 12}},
		{"nine fills", cat(fills(9), []byte{0x0b}), []int{0, 12, 24}},
		{"a row of calls", cat(calls(row), []byte{0x0b}), []int{0}},
		{"a longer row", cat(calls(2*row+1), []byte{0x0b}), []int{0, 2 * row, 4 * row}},
		{"plain", cat(nops(standard.most+10), []byte{0x0b}), []int{0, standard.most}},
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

// TestPlanPaths takes random ways through random code: none is longer than
// allowed without a guard.
func TestPlanPaths(t *testing.T) {
	w := weights{most: 20, call: 6, bulk: 15}
	rapid.Check(t, func(rt *rapid.T) {
		code := append(block(rt, 4), opEnd)
		r := &reader{b: code}
		at := plan(r, w)
		if r.err != nil {
			rt.Fatalf("%x: %v", code, r.err)
		}
		out := []byte{}
		for i, c := range code {
			for _, p := range at {
				if p == i {
					out = append(out, guard...)
				}
			}
			out = append(out, c)
		}
		again := &reader{b: out}
		if more := plan(again, w); more != nil {
			rt.Fatalf("%x became %x, which is guarded again at %v", code, out, more)
		}
		for range 20 {
			if most := path(rt, out, w); most > w.most {
				rt.Fatalf("%x became %x: %d without a guard", code, out, most)
			}
		}
	})
}

// block draws instructions that nest to a depth.
func block(rt *rapid.T, depth int) []byte {
	var code []byte
	for range rapid.IntRange(0, 8).Draw(rt, "length") {
		kind := rapid.IntRange(0, 7).Draw(rt, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0, 1:
			code = append(code, 0x01)
		case 2:
			code = append(code, opCall, 0)
		case 3:
			code = append(code, opBulk, 11, 0)
		case 4:
			code = cat(code, []byte{opBlock, 0x40}, block(rt, depth-1), []byte{opEnd})
		case 5:
			code = cat(code, []byte{opLoop, 0x40}, block(rt, depth-1), []byte{opEnd})
		case 6:
			code = cat(code, []byte{opIf, 0x40}, block(rt, depth-1), []byte{opEnd})
		case 7:
			code = cat(code, []byte{opIf, 0x40}, block(rt, depth-1), []byte{opElse}, block(rt, depth-1), []byte{opEnd})
		}
	}
	return code
}

// path follows one way through code, in which any instruction may leave any
// number of blocks, and returns the greatest weight without a loop header.
func path(rt *rapid.T, code []byte, w weights) int {
	type instruction struct {
		op     byte
		weight int
	}
	var list []instruction
	walk(&reader{b: code}, func(_ int, op byte, _ uint32) {
		weight := map[byte]int{opCall: w.call, opBulk: w.bulk, opLoop: 0, opEnd: 0, opElse: 0, opBlock: 2, opIf: 2}
		n, ok := weight[op]
		if !ok {
			n = 1
		}
		list = append(list, instruction{op, n})
	})
	// skip returns the place after the end of so many blocks.
	skip := func(i, levels int, orElse bool) int {
		for depth := levels; i < len(list); i++ {
			switch list[i].op {
			case opBlock, opLoop, opIf:
				depth++
			case opElse:
				if orElse && depth == 1 {
					return i + 1
				}
			case opEnd:
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return i
	}
	since, most := 0, 0
	for i := 0; i < len(list); i++ {
		since += list[i].weight
		if list[i].op == opLoop {
			since = 0
		}
		most = max(most, since)
		switch {
		case list[i].op == opElse:
			i = skip(i+1, 1, false) - 1
		case list[i].op == opIf && rapid.Bool().Draw(rt, "else"):
			i = skip(i+1, 1, true) - 1
		case rapid.IntRange(0, 9).Draw(rt, "leave") == 0:
			i = skip(i+1, rapid.IntRange(1, 3).Draw(rt, "levels"), false) - 1
		}
	}
	return most
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
