package wasmbin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// planned plans the checks of a function body without parameters, in a module of
// four functions of which the last is light.
func planned(t rapid.TB, code []byte) []edit {
	w := &rewriter{
		p:     &parser{types: []FuncType{{}}, funcs: []uint32{0, 0, 0, 0}, globals: 1},
		light: []uint8{0, 0, 0, 20},
	}
	f := &reader{b: cat([]byte{0}, code)}
	p := w.planner(f, 0)
	p.plan()
	if f.err != nil {
		t.Fatalf("%x: %v", code, f.err)
	}
	return p.edits
}

// shown writes checks as place:weight.
func shown(edits []edit) string {
	var list []string
	for _, e := range edits {
		name := map[editKind]string{editCheck: "", editTight: "tight ", editBulk: "bulk ", editGrow: "grow "}
		if n, ok := name[e.kind]; ok {
			list = append(list, fmt.Sprintf("%s%d:%d", n, e.start-1, e.n))
		}
	}
	return strings.Join(list, ", ")
}

func TestPlan(t *testing.T) {
	nops := func(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }
	for _, tt := range []struct {
		name string
		code []byte
		want string
	}{
		{"light", cat(nops(lightWeight), []byte{0x0b}), ""},
		{"not light", cat(nops(lightWeight+1), []byte{0x0b}), "0:49"},
		{"heavy", cat(nops(500), []byte{0x0b}), "0:500"},
		{"very heavy", cat(nops(2000), []byte{0x0b}), "0:768, 768:768, 1536:768"},
		{"a heavy arm", cat(nops(600), []byte{0x04, 0x40}, nops(200), []byte{0x05}, nops(20), []byte{0x0b}, nops(80), []byte{0x0b}), "0:768, 769:768"},
		{"a heavy loop", cat(nops(600), []byte{0x03, 0x40}, nops(1000), []byte{0x0b}, nops(300), []byte{0x0b}), "0:768, 602:768, 1370:768, 1770:768"},
		{"a heavy call", cat(nops(766), []byte{0x10, 0, 0x0b}), "0:766, 766:766"},
		{"a heavy fill", cat(nops(766), []byte{0xfc, 11, 0, 0x0b}), "0:766, 766:766, bulk 766:11"},
		{"much after a call", cat([]byte{0x10, 0}, nops(200), []byte{0x0b}), "0:135, 129:135"},
		{"a call in a loop, and much after it", cat([]byte{0x03, 0x40, 0x10, 0, 0x0b}, nops(200), []byte{0x0b}), "0:128, 2:8, 132:128"},
		{"calls", []byte{0x10, 0, 0x0b}, "0:8"},
		{"calls a light one", []byte{0x10, 3, 0x0b}, "0:28"},
		{"calls anything", []byte{0x11, 0, 0, 0x0b}, "0:64"},
		{"arms", cat([]byte{0x04, 0x40}, nops(100), []byte{0x05}, nops(150), []byte{0x0b}, nops(10), []byte{0x0b}), "0:161"},
		{"no else", cat([]byte{0x04, 0x40}, nops(100), []byte{0x0b}, nops(10), []byte{0x0b}), "0:111"},
		{"over the end of a block", cat([]byte{0x02, 0x40}, nops(10), []byte{0x0c, 0}, nops(90), []byte{0x0b}, nops(60), []byte{0x0b}), "0:72"},
		{"a table", cat([]byte{0x02, 0x40, 0x02, 0x40, 0x0e, 1, 0, 1, 0x0b}, nops(50), []byte{0x0f, 0x0b}, nops(60), []byte{0x0b}), "0:63"},
		{"a loop", cat(nops(5), []byte{0x03, 0x40}, nops(70), []byte{0x0d, 0, 0x0b}, nops(50), []byte{0x0b}), "0:56, 7:71"},
		{"a tight loop", cat(nops(5), []byte{0x03, 0x40}, nops(60), []byte{0x0d, 0, 0x0b, 0x0b}), "tight 7:61"},
		{"a loop of loops", cat([]byte{0x03, 0x40}, nops(5), []byte{0x03, 0x40}, nops(9), []byte{0x0d, 1, 0x0b}, nops(3), []byte{0x0b, 0x0b}), "2:9, tight 9:10"},
		{"a loop that calls", []byte{0x03, 0x40, 0x10, 1, 0x0d, 0, 0x0b, 0x0b}, "2:10"},
		{"a loop that returns a value", []byte{0x03, 0x7f, 0x41, 0, 0x0b, 0x0b}, "2:1"},
		{"a loop first, and a call after it", []byte{0x03, 0x40, 0x0b, 0x10, 1, 0x0b}, "0:9, tight 2:0"},
		{"fill", []byte{0xfc, 11, 0, 0x0b}, "0:64, bulk 0:11"},
		{"grow", []byte{0x40, 0, 0x0b}, "0:64, grow 0:0"},
		{"truncation is not bulk", []byte{0xfc, 0, 0xfc, 7, 0x0b}, ""},
		{"table.size is not bulk", []byte{0xfc, 16, 0, 0x0b}, ""},
		{"dead", cat([]byte{0x00}, nops(100), []byte{0x0b}), ""},
		{"dead loop", cat([]byte{0x00, 0x03, 0x40}, nops(100), []byte{0x0b, 0x0b}), "tight 3:0"},
	} {
		if got := shown(planned(t, tt.code)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestPlanPaths takes random ways through random code: none weighs more than the
// checks on it have taken.
func TestPlanPaths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		code := append(drawBlock(rt, 3, 0), opEnd)
		edits := planned(rt, code)
		for range 20 {
			if owed := path(rt, code, edits); owed != "" {
				rt.Fatalf("%x with %s: %s", code, shown(edits), owed)
			}
		}
	})
}

// drawBlock draws instructions in so many open blocks, and in blocks of their own to
// a depth.
func drawBlock(rt *rapid.T, depth, open int) []byte {
	var code []byte
	label := func() byte { return byte(rapid.IntRange(0, open).Draw(rt, "label")) }
	for range rapid.IntRange(0, 8).Draw(rt, "length") {
		kind := rapid.IntRange(0, 11).Draw(rt, "kind")
		if depth == 0 {
			kind %= 7
		}
		switch kind {
		case 0, 1:
			code = append(code, bytes.Repeat([]byte{0x01}, rapid.IntRange(1, 30).Draw(rt, "nops"))...)
		case 2:
			code = append(code, opCall, byte(rapid.IntRange(0, 3).Draw(rt, "function")))
		case 3:
			code = append(code, opBulk, 11, 0)
		case 4, 5:
			code = append(code, opBrIf, label())
		case 6:
			code = append(code, rapid.SampledFrom([][]byte{{opBr, label()}, {opBrTable, 1, label(), label()}, {opReturn}}).Draw(rt, "jump")...)
		case 7, 8:
			code = cat(code, []byte{opLoop, 0x40}, drawBlock(rt, depth-1, open+1), []byte{opEnd})
		case 9:
			code = cat(code, []byte{opBlock, 0x40}, drawBlock(rt, depth-1, open+1), []byte{opEnd})
		case 10:
			code = cat(code, []byte{opIf, 0x40}, drawBlock(rt, depth-1, open+1), []byte{opEnd})
		case 11:
			code = cat(code, []byte{opIf, 0x40}, drawBlock(rt, depth-1, open+1), []byte{opElse}, drawBlock(rt, depth-1, open+1), []byte{opEnd})
		}
	}
	return code
}

// step is an instruction, for path.
type step struct {
	at, after int // in the code
	op        byte
	weight    int
	labels    []uint32
	end, alt  int // of a block: where its end is, and its else
}

func steps(code []byte) []step {
	var list []step
	var open []int
	r := &reader{b: code}
	walk(r, func(at int, op byte, _ uint32) {
		s := step{at: at, after: r.pos, op: op, weight: 1}
		in := &reader{b: code, pos: at + 1}
		switch op {
		case opBr, opBrIf:
			s.labels = []uint32{in.u32()}
		case opBrTable:
			for range in.u32() + 1 {
				s.labels = append(s.labels, in.u32())
			}
		case opCall:
			if s.weight = weighCall; in.u32() == 3 {
				s.weight += 20
			}
		case opBulk:
			s.weight = weighBulk
		case opElse:
			s.weight = 0
			list[open[len(open)-1]].alt = len(list)
		case opEnd:
			s.weight = 0
			if len(open) > 0 {
				list[open[len(open)-1]].end = len(list)
				open = open[:len(open)-1]
			}
		case opBlock, opLoop, opIf:
			open = append(open, len(list))
		}
		list = append(list, s)
	})
	return list
}

// path follows one way through code, and says where more was run than paid for.
func path(rt *rapid.T, code []byte, edits []edit) string {
	type account struct{ paid, run int }
	fees := map[int]int{} // by place
	for _, e := range edits {
		if e.kind == editCheck || e.kind == editTight {
			fees[e.start-1] = max(fees[e.start-1], int(e.n))
		}
	}
	pay := func(at int) account {
		fee, ok := fees[at]
		if !ok {
			fee = lightWeight
		}
		return account{paid: fee}
	}
	list := steps(code)
	accounts := []account{pay(0)}
	if list[0].op == opLoop && !slices.ContainsFunc(edits, func(e edit) bool { return e.start == 1 && e.kind == editCheck }) {
		accounts[0] = account{paid: lightWeight}
	}
	var open []int // blocks
	i := 0
	for range 300 {
		s := list[i]
		a := &accounts[len(accounts)-1]
		if fee, ok := fees[s.at]; ok {
			*a = account{paid: fee}
		}
		if a.run += s.weight; a.run > a.paid {
			return fmt.Sprintf("%d of %d at %d", a.run, a.paid, s.at)
		}
		leave := func(label int) bool { // to the end of a block, or to the header of a loop
			for range label {
				if list[open[len(open)-1]].op == opLoop {
					accounts = accounts[:len(accounts)-1]
				}
				open = open[:len(open)-1]
			}
			if len(open) == 0 {
				return true
			}
			to := list[open[len(open)-1]]
			if to.op == opLoop {
				accounts[len(accounts)-1] = pay(to.after)
				i = open[len(open)-1] + 1
				return false
			}
			open = open[:len(open)-1]
			i = to.end + 1
			return false
		}
		switch s.op {
		case opLoop:
			open = append(open, i)
			accounts = append(accounts, pay(s.after))
		case opBlock:
			open = append(open, i)
		case opIf:
			open = append(open, i)
			if rapid.Bool().Draw(rt, "else") {
				if s.alt == 0 {
					open = open[:len(open)-1]
					i = s.end + 1
				} else {
					i = s.alt + 1
				}
				continue
			}
		case opElse:
			open, i = open[:len(open)-1], list[open[len(open)-1]].end+1
			continue
		case opEnd:
			if len(open) == 0 {
				return ""
			}
			if list[open[len(open)-1]].op == opLoop {
				accounts = accounts[:len(accounts)-1]
			}
			open = open[:len(open)-1]
		case opReturn:
			return ""
		case opBr, opBrTable:
			if leave(int(rapid.SampledFrom(s.labels).Draw(rt, "to"))) {
				return ""
			}
			continue
		case opBrIf:
			if rapid.Bool().Draw(rt, "taken") {
				if leave(int(s.labels[0])) {
					return ""
				}
				continue
			}
		}
		i++
	}
	return ""
}

// TestRewriteInterruptsRows runs code without loops and recursion that would
// fill tens of gigabytes of memory, for some seconds, before it looks up.
func TestRewriteInterruptsRows(t *testing.T) {
	fill := []byte{0x41, 0, 0x41, 1, 0x41, 0x80, 0x80, 0x80, 0x10, 0xfc, 11, 0} // 32 MiB
	b := mod(
		sec(sectionType, vec(functype("", ""))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionMemory, vec([]byte{0, 0x80, 4})),
		sec(sectionExport, vec(cat(str("fill"), []byte{0, 0}))),
		sec(sectionCode, vec(fn(cat(bytes.Repeat(fill, 3000), []byte{0x0b})...))),
	)
	took, err := interrupted(t, rewritten(t, b), "fill")
	if err == nil || took > 5*time.Second {
		t.Errorf("took %v: %v", took, err)
	}
}
