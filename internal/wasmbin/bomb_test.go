package wasmbin

import (
	"bytes"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/tetratelabs/wazero"
)

var costly = flag.Bool("costly", false, "compile the just allowed modules that take seconds, too (a minute in all)")

// one returns a module of one function that begins with locals of type i32.
func one(locals int, code ...[]byte) []byte {
	return wasmtest.Module{
		Memory: [2]uint32{1, 1},
		Funcs:  []wasmtest.Func{{Locals: bytes.Repeat([]byte{wasmtest.I32}, locals), Body: wasmtest.Seq(code...)}},
	}.Encode()
}

// pair returns a module whose first function has the code, and whose second
// has so many results.
func pair(results int, code ...[]byte) []byte {
	return wasmtest.Module{Funcs: []wasmtest.Func{
		{Body: wasmtest.Seq(code...)},
		{Results: bytes.Repeat([]byte{wasmtest.I64}, results), Body: wasmtest.Unreachable},
	}}.Encode()
}

func many(functions int, code ...[]byte) []byte {
	m := wasmtest.Module{Memory: [2]uint32{1, 1}}
	for range functions {
		m.Funcs = append(m.Funcs, wasmtest.Func{Locals: []byte{wasmtest.I32}, Body: wasmtest.Seq(code...)})
	}
	return m.Encode()
}

// globals returns a module with mutable globals whose function calls itself.
func globals(n, calls int) []byte {
	return mod(
		sec(sectionType, vec(functype("", ""))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionGlobal, cat(num(n), bytes.Repeat([]byte{0x7f, 1, 0x41, 0, 0x0b}, n))),
		sec(sectionCode, vec(fn(cat(bytes.Repeat([]byte{0x10, 0}, calls), []byte{0x0b})...))),
	)
}

// uses reads locals, each once.
func uses(locals int) []byte {
	var b []byte
	for i := range locals {
		b = wasmtest.Seq(b, wasmtest.LocalGet(i), wasmtest.Drop)
	}
	return b
}

func sets(locals int) []byte {
	var b []byte
	for i := range locals {
		b = wasmtest.Seq(b, wasmtest.I32Const(1), wasmtest.LocalSet(i))
	}
	return b
}

var (
	rep     = wasmtest.Repeat
	load    = wasmtest.Seq(wasmtest.I32Const(0), wasmtest.I32Load, wasmtest.Drop)
	brIf    = wasmtest.Seq(wasmtest.I32Const(1), wasmtest.BrIf(0))
	ifEnd   = wasmtest.Seq(wasmtest.LocalGet(0), wasmtest.If, wasmtest.End)
	fill    = wasmtest.Seq(rep(3, wasmtest.I32Const(0)), wasmtest.MemoryFill)
	copying = wasmtest.Seq(rep(3, wasmtest.I32Const(0)), wasmtest.MemoryCopy)
)

func nested(open []byte, n int, inside ...[]byte) []byte {
	return wasmtest.Seq(rep(n, open), wasmtest.Seq(inside...), rep(n, wasmtest.End))
}

// costTests have what is too much, and what is just allowed, of all that takes
// long or much memory.
var costTests = []struct {
	name        string
	over, under func() []byte
}{
	{
		"results of calls", func() []byte { return pair(1000, rep(20_000, wasmtest.Call(1)), wasmtest.Unreachable) },
		func() []byte { return pair(100, rep(900, wasmtest.Call(1)), wasmtest.Unreachable) },
	},
	{
		"nested loops", func() []byte { return one(1000, nested(wasmtest.Loop, 3000, uses(1000))) },
		func() []byte { return one(1000, nested(wasmtest.Loop, 60, uses(1000))) },
	},
	{
		"deep loops", func() []byte { return one(1, nested(wasmtest.Loop, 900_000)) },
		func() []byte { return one(1, nested(wasmtest.Loop, 64)) },
	},
	{
		"variables in loops", func() []byte { return one(5000, nested(wasmtest.Loop, 50, uses(5000))) },
		func() []byte { return one(1000, nested(wasmtest.Loop, 60, uses(1000))) },
	},
	{"fill", func() []byte { return one(1, rep(20_000, fill)) }, func() []byte { return one(1, rep(4000, fill)) }},
	{"copy", func() []byte { return one(1, rep(20_000, copying)) }, func() []byte { return one(1, rep(4000, copying)) }},
	{
		"deep blocks", func() []byte { return one(1, nested(wasmtest.Block, 100_000)) },
		func() []byte { return one(1, nested(wasmtest.Block, 7990)) },
	},
	{
		"blocks in a row", func() []byte { return one(1, rep(100_000, wasmtest.Block, wasmtest.End)) },
		func() []byte { return one(1, rep(20_000, wasmtest.Block, wasmtest.End)) },
	},
	{
		"branches in a row", func() []byte { return one(1, nested(wasmtest.Block, 1, rep(50_000, brIf))) },
		func() []byte { return one(1, nested(wasmtest.Block, 1, rep(20_000, brIf))) },
	},
	{"ifs", func() []byte { return one(1, rep(100_000, ifEnd)) }, func() []byte { return one(1, rep(9000, ifEnd)) }},
	{
		"variables over ifs", func() []byte { return one(1000, rep(10_000, ifEnd), uses(1000)) },
		func() []byte { return one(1000, rep(3000, ifEnd), uses(1000)) },
	},
	{"uses after branches", func() []byte {
		return one(1, nested(wasmtest.Block, 1, rep(10_000, brIf), rep(1_000_000, wasmtest.LocalGet(0), wasmtest.Drop)))
	}, func() []byte {
		return one(1, nested(wasmtest.Block, 1, rep(10_000, brIf), rep(90_000, wasmtest.LocalGet(0), wasmtest.Drop)))
	}},
	{
		"branches times variables", func() []byte { return one(1000, nested(wasmtest.Block, 1, rep(5000, brIf)), uses(1000)) },
		func() []byte { return one(1000, nested(wasmtest.Block, 1, rep(2000, brIf)), uses(1000)) },
	},
	{
		"variables that branches set", func() []byte {
			return one(3000, rep(300, wasmtest.I32Const(1), wasmtest.If, sets(3000), wasmtest.End), uses(3000))
		},
		func() []byte {
			return one(1000, rep(300, wasmtest.I32Const(1), wasmtest.If, sets(1000), wasmtest.End), uses(1000))
		},
	},
	{
		"addresses", func() []byte { return one(1, rep(10_000, load), nested(wasmtest.Block, 1, rep(10_000, brIf))) },
		func() []byte { return one(1, rep(4000, load), nested(wasmtest.Block, 1, rep(3000, brIf))) },
	},
	{"loads", func() []byte { return one(1, rep(1_000_000, load)) }, func() []byte { return one(1, rep(30_000, load)) }},
	{
		"calls", func() []byte { return one(1, rep(1_000_000, wasmtest.Call(0))) },
		func() []byte { return one(1, rep(100_000, wasmtest.Call(0))) },
	},
	{
		"br_table", func() []byte {
			return one(1, nested(wasmtest.Block, 1, wasmtest.I32Const(0), wasmtest.BrTable(500_000)))
		},
		func() []byte {
			return one(1, nested(wasmtest.Block, 1, wasmtest.I32Const(0), wasmtest.BrTable(20_000)))
		},
	},
	{"globals", func() []byte { return globals(1000, 20_000) }, func() []byte { return globals(1000, 1500) }},
	{"functions together", func() []byte { return many(100, rep(5000, ifEnd)) }, func() []byte { return many(3, rep(5000, ifEnd)) }},
	{"plain code", func() []byte {
		return one(1, wasmtest.LocalGet(0), rep(2_000_000, wasmtest.I32Const(1), wasmtest.I32Add), wasmtest.Drop)
	}, func() []byte {
		return one(1, wasmtest.LocalGet(0), rep(400_000, wasmtest.I32Const(1), wasmtest.I32Add), wasmtest.Drop)
	}},
}

// TestBombs has modules that wazero would need minutes or gigabytes for.
func TestBombs(t *testing.T) {
	for _, tt := range costTests {
		b := tt.over()
		start := time.Now()
		_, err := Parse(b)
		took := time.Since(start)
		var le *LimitError
		if !errors.As(err, &le) || !le.Costly || took > 10*time.Second {
			t.Errorf("%s: %d bytes: %v after %v", tt.name, len(b), err, took)
		}
	}
}

// TestCostAllowed compiles what is just allowed, as it is run: rewritten.
func TestCostAllowed(t *testing.T) {
	for _, tt := range costTests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parse(tt.under())
			if err != nil {
				t.Fatal(err)
			}
			w, err := Rewrite(tt.under(), roomy)
			if err != nil {
				t.Fatal(err)
			}
			if !*costly && p.work > 1e9 {
				t.Skip("takes seconds; run with -costly")
			}
			ctx := t.Context()
			r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
			defer r.Close(ctx)
			start := time.Now()
			_, err = r.CompileModule(ctx, w.Module)
			took := time.Since(start)
			t.Logf("%v, %d ms and %d MiB reckoned", took, p.work/1e6, p.memory>>20)
			if err != nil || took > 30*time.Second {
				t.Errorf("%v: %v", took, err)
			}
		})
	}
}
