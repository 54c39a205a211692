package wasmbin

import (
	"math/rand/v2"
	"os"
	"testing"
)

// TestCostAnyCode reckons what code costs that no compiler wrote and that
// mostly is not valid: of all opcodes, with any operands.
func TestCostAnyCode(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ops := []byte{
		opUnreachable, opBlock, opLoop, opIf, opElse, opEnd, opBr, opBrIf, opBrTable, opReturn, opCall, opCallIndirect,
		opDrop, opSelect, opLocalGet, opLocalSet, opLocalTee, opGlobalGet, opGlobalSet, opFirstLoad, opFirstStore,
		opMemoryGrow, opBulk, opVector,
	}
	for range 100_000 {
		code := make([]byte, 0, 64)
		for range rnd.IntN(40) {
			if rnd.IntN(3) > 0 {
				code = append(code, ops[rnd.IntN(len(ops))])
			}
			code = append(code, byte(rnd.IntN(1+rnd.IntN(255))))
		}
		b := mod(
			sec(sectionType, vec(functype("", ""), functype("\x7f\x7e", "\x7c\x7c"), functype("\x7b", ""))),
			sec(sectionFunction, vec(num(rnd.IntN(3)), num(rnd.IntN(3)))),
			sec(sectionGlobal, vec([]byte{0x7e, 1, 0x42, 0, 0x0b})),
			sec(sectionCode, vec(sized(cat([]byte{1, 2, 0x7f}, code, []byte{0x0b})), fn(0x0b))),
		)
		if m, err := Parse(b); (m == nil) == (err == nil) {
			t.Fatalf("%x: %v, %v", code, m, err)
		}
	}
}

// TestRealCost says how much of the limits real modules take, and holds a
// program in Go to half of them.
func TestRealCost(t *testing.T) {
	check := func(b []byte) {
		p, err := parse(b)
		if err != nil {
			t.Fatal(err)
		}
		all := (p.memory + p.kept) >> 20
		t.Logf("%d bytes: %d nodes, %d MiB, %d MiB in all, %d ms", len(b), p.nodes, p.memory>>20, all, p.work/1e6)
		if p.nodes > maxNodes/2 || p.memory>>20 > maxMemory/2 || all > maxModuleMemory/2 || p.work/1e6 > maxWork/2 {
			t.Errorf("a module of %d bytes takes more than half of a limit", len(b))
		}
	}
	for _, file := range wazeroModules(t) {
		if b, err := os.ReadFile(file); err == nil && len(b) > 30_000 {
			check(b)
		}
	}
	check(buildGo(t, hello))
}

// FuzzCost takes any code for that of a function.
func FuzzCost(f *testing.F) {
	f.Add([]byte{opBlock, 0x40, opLocalGet, 0, opBrIf, 0, opEnd})
	f.Add([]byte{opLoop, 1, opLocalGet, 0, opIf, 0x7f, opElse, opEnd, opBrTable, 1, 0, 1, opEnd})
	f.Fuzz(func(t *testing.T, code []byte) {
		p := &parser{types: []FuncType{{}, {Params: []ValueType{I32}, Results: []ValueType{I64, I64}}}, funcs: []uint32{0, 1}, mutables: 1, globals: 1}
		r, body := &reader{}, &reader{b: code}
		p.costs(r, body, 0, p.types[1], 2)
		if r.err == nil && p.work == 0 {
			t.Error("no work")
		}
	})
}
