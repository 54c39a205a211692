package wasmbin

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

var roomy = Options{MaxMemory: 1 << 16, MaxTables: 8, MaxTable: 1 << 20}

// call runs an exported function of a rewritten module.
func call(t *testing.T, b []byte, name string, args ...uint64) ([]uint64, error) {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	newMeter(quantum).register(t, r)
	m, err := r.Instantiate(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return m.ExportedFunction(name).Call(t.Context(), args...)
}

// interrupted runs an exported function until 200 ms have passed, and returns
// how long that took.
func interrupted(t *testing.T, b []byte, name string, args ...uint64) (time.Duration, error) {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	newMeter(quantum).register(t, r)
	m, err := r.Instantiate(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = m.ExportedFunction(name).Call(ctx, args...)
	return time.Since(start), err
}

// rewritten rewrites a module.
func rewritten(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := Rewrite(b, roomy)
	if err != nil {
		t.Fatal(err)
	}
	return w.Module
}

// TestRewriteInterrupts runs code that would take until long after the end of
// the test. As it was the call could not be stopped, and neither could the
// process, so that is not tried here.
func TestRewriteInterrupts(t *testing.T) {
	for name, b := range map[string][]byte{"direct": fib(), "indirect": indirect(), "after a loop": loopFib()} {
		b = rewritten(t, b)
		if took, err := interrupted(t, b, "fib", 60); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
			t.Errorf("%s: took %v: %v", name, took, err)
		}
		for n, want := range []uint64{0, 1, 1, 2, 3, 5, 8, 13} {
			got, err := call(t, b, "fib", uint64(n))
			if err != nil || got[0] != want {
				t.Errorf("%s: fib(%d) is %v, %v", name, n, got, err)
			}
		}
	}
}

// check is what a check looks like, in a module with one imported function and no
// global of its own.
func check(take ...byte) []byte {
	return cat([]byte{0x23, 0}, take, []byte{
		0x7d, 0x24, 0, // i64.sub, global.set 0
		0x23, 0, 0x42, 0, 0x59, // global.get 0, i64.const 0, i64.ge_s
		0x04, 0x40, 0x05, 0x23, 0, 0x10, 1, 0x24, 0, 0x0b, // if, else, global.get 0, call 1, global.set 0, end
	})
}

// TestRewriteInserts has what becomes of the first function of a module that
// imports one, and of its other parts.
func TestRewriteInserts(t *testing.T) {
	module := func(first []byte) []byte {
		return mod(
			custom("before", nil),
			sec(sectionType, vec(functype("", ""))),
			sec(sectionImport, vec(cat(str("env"), str("f"), []byte{0, 0}))),
			sec(sectionFunction, vec(num(0), num(0))),
			sec(sectionMemory, vec([]byte{0, 1})),
			sec(sectionCode, vec(first, fn(0x0b))),
		)
	}
	local := func(code ...byte) []byte { return sized(cat(vec([]byte{2, 0x7f}, []byte{1, 0x7e}), code)) }
	extra := func(code ...byte) []byte { return sized(cat(vec([]byte{3, 0x7f}), code)) }
	for _, tt := range []struct {
		name        string
		first, want []byte
	}{
		{"nothing", fn(0x01, 0x0b), fn(0x01, 0x0b)},
		{"call of an import", fn(0x10, 0, 0x0b), fn(cat(check(0x42, 8), []byte{0x10, 0, 0x0b})...)},
		{"call of its own", fn(0x10, 1, 0x0b), fn(cat(check(0x42, 8), []byte{0x10, 2, 0x0b})...)},
		{"locals", local(0x10, 2, 0x0b), local(cat(check(0x42, 8), []byte{0x10, 3, 0x0b})...)},
		{"loop", fn(0x03, 0x40, 0x10, 0, 0x0b, 0x0b), fn(cat([]byte{0x03, 0x40}, check(0x42, 9), []byte{0x10, 0, 0x0b, 0x0b})...)},
		{"a constant that looks like a call", fn(0x41, 0x10, 0x1a, 0x0b), fn(0x41, 0x10, 0x1a, 0x0b)},
		{
			"a vector that looks like a call", fn(cat([]byte{0xfd, 12}, bytes.Repeat([]byte{0x10}, 16), []byte{0x1a, 0x0b})...),
			fn(cat([]byte{0xfd, 12}, bytes.Repeat([]byte{0x10}, 16), []byte{0x1a, 0x0b})...),
		},
		{
			"fill", fn(0x41, 0, 0x41, 0, 0x41, 9, 0xfc, 11, 0, 0x0b),
			extra(cat(check(0x42, 0xc3, 0), []byte{0x41, 0, 0x41, 0, 0x41, 9, 0x22, 0}, check(0x20, 0, 0xad, 0x42, 3, 0x88), []byte{0xfc, 11, 0, 0x0b})...),
		},
		{
			"grow", fn(0x41, 1, 0x40, 0, 0x1a, 0x0b),
			extra(cat(check(0x42, 0xc2, 0), []byte{0x41, 1, 0x22, 0},
				check(0x20, 0, 0xad, 0x42, 0, 0x20, 0, 0x41, 0x80, 0x80, 4, 0x4d, 0x1b, 0x42, 13, 0x86), []byte{0x40, 0, 0x1a, 0x0b})...),
		},
		{
			// A branch that leaves the loop leaves three blocks more.
			"tight loop", local(0x02, 0x40, 0x03, 0x40, 0x42, 1, 0x21, 2, 0x0c, 1, 0x0b, 0x0b, 0x0b),
			sized(cat(
				vec([]byte{2, 0x7f}, []byte{1, 0x7e}, []byte{3, 0x7f}),
				[]byte{0x02, 0x40},
				[]byte{0x02, 0x40, 0x03, 0x40, 0x02, 0x40, 0x03, 0x40},
				[]byte{0x20, 4, 0x41, 3, 0x6b, 0x22, 4, 0x41, 0, 0x4e, 0x04, 0x40, 0x05, 0x0c, 2, 0x0b},
				[]byte{0x42, 1, 0x21, 2, 0x0c, 4, 0x0b},
				[]byte{0x0c, 2, 0x0b},
				[]byte{0x20, 2, 0x42, 0, 0x7c, 0x21, 2}, // the copy
				[]byte{0x20, 5, 0x41, 1, 0x74, 0x41, 0x80, 1, 0x6a, 0x20, 5, 0x20, 5, 0x41, 0x80, 0x80, 2, 0x49, 0x1b, 0x22, 5},
				[]byte{0x20, 4, 0x6a, 0x21, 4}, check(0x20, 5, 0xad),
				[]byte{0x0c, 0, 0x0b, 0x0b},
				[]byte{0x0b, 0x0b},
			)),
		},
	} {
		got := rewritten(t, module(tt.first))
		want := mod(
			custom("before", nil),
			sec(sectionType, vec(functype("", ""), functype("\x7e", "\x7e"))),
			sec(sectionImport, vec(cat(str("env"), str("f"), []byte{0, 0}), cat(str("sandboxd_engine"), str("checkpoint"), []byte{0, 1}))),
			sec(sectionFunction, vec(num(0), num(0))),
			sec(sectionMemory, vec([]byte{1, 1, 0x80, 0x80, 4})),
			sec(sectionGlobal, vec([]byte{0x7e, 1, 0x42, 0, 0x0b})),
			sec(sectionExport, vec(cat(str("sandboxd_engine.counter"), []byte{3, 0}))),
			sec(sectionCode, vec(tt.want, fn(0x0b))),
		)
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
	}
}

// TestRewriteMoves has every other place where an index is.
func TestRewriteMoves(t *testing.T) {
	module := func(imports, globals, exports [][]byte, f byte) []byte {
		return mod(
			sec(sectionType, vec(functype("", ""), functype("\x7e", "\x7e"))),
			sec(sectionImport, vec(append([][]byte{cat(str("env"), str("f"), []byte{0, 0}), cat(str("env"), str("g"), []byte{3, 0x7f, 0})}, imports...)...)),
			sec(sectionFunction, vec(num(0))),
			sec(sectionTable, vec([]byte{0x70, 1, 9, 9})),
			sec(sectionGlobal, vec(append([][]byte{{0x70, 0, 0xd2, f, 0x0b}}, globals...)...)),
			sec(sectionExport, vec(append([][]byte{cat(str("f"), []byte{0, 0}), cat(str("own"), []byte{0, f})}, exports...)...)),
			sec(sectionStart, num(int(f))),
			sec(sectionElement, vec(
				[]byte{0, 0x23, 0, 0x0b, 2, 0, f},
				[]byte{1, 0, 1, f},
				[]byte{2, 0, 0x41, 0, 0x0b, 0, 1, f},
				[]byte{3, 0, 1, f},
				[]byte{4, 0x41, 0, 0x0b, 2, 0xd2, f, 0x0b, 0xd0, 0x70, 0x0b},
				[]byte{5, 0x70, 1, 0xd2, f, 0x0b},
				[]byte{6, 0, 0x41, 0, 0x0b, 0x70, 1, 0xd2, f, 0x0b},
				[]byte{7, 0x70, 1, 0xd2, f, 0x0b},
			)),
			sec(sectionCode, vec(fn(0x0b))),
			custom("name", cat(
				[]byte{0}, sized(str("module")),
				[]byte{1}, sized(vec(cat(num(0), str("zero")), cat(num(int(f)), str("own")))),
				[]byte{2}, sized(vec(cat(num(int(f)), vec(cat(num(1), str("local")))))),
				[]byte{7}, sized([]byte("as it is")),
			)),
		)
	}
	got := rewritten(t, module(nil, nil, nil, 1))
	want := module(
		[][]byte{cat(str("sandboxd_engine"), str("checkpoint"), []byte{0, 1})},
		[][]byte{{0x7e, 1, 0x42, 0, 0x0b}},
		[][]byte{cat(str("sandboxd_engine.counter"), []byte{3, 2})}, 2,
	)
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
}

// TestRewriteRefusesIndices has indices that would exist after the rewriting only.
func TestRewriteRefusesIndices(t *testing.T) {
	module := func(global, element, data []byte, code ...byte) []byte {
		return mod(
			sec(sectionType, vec(functype("", ""))),
			sec(sectionFunction, vec(num(0))),
			sec(sectionTable, vec([]byte{0x70, 0, 1})),
			sec(sectionMemory, vec([]byte{0, 1})),
			sec(sectionGlobal, vec(cat([]byte{0x7f, 1}, global, []byte{0x0b}))),
			sec(sectionElement, vec(element)),
			sec(sectionCode, vec(sized(cat(vec([]byte{2, 0x7f}), code, []byte{0x0b})))),
			sec(sectionData, vec(cat([]byte{0}, data, []byte{0x0b}, str("")))),
		)
	}
	zero := []byte{0x41, 0}
	element := []byte{0, 0x41, 0, 0x0b, 1, 0}
	if _, err := Rewrite(module(zero, element, zero), roomy); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"call":           module(zero, element, zero, 0x10, 1),
		"ref.func":       module(zero, element, zero, 0xd2, 1, 0x1a),
		"type of a call": module(zero, element, zero, 0x41, 0, 0x11, 1, 0),
		"type of a loop": module(zero, element, zero, 0x42, 0, 0x03, 1, 0x0b, 0x1a),
		"global.get":     module(zero, element, zero, 0x23, 1, 0x1a),
		"global.set":     module(zero, element, zero, 0x42, 0, 0x24, 1),
		"local.get":      module(zero, element, zero, 0x20, 2, 0x1a),
		"local.tee":      module(zero, element, zero, 0x41, 0, 0x22, 2, 0x1a, 0x03, 0x40, 0x0b),
		"label":          module(zero, element, zero, 0x03, 0x40, 0x0c, 2, 0x0b),
		"large function": module(zero, element, zero, 0x10, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"element":        module(zero, []byte{0, 0x41, 0, 0x0b, 1, 1}, zero),
		"elements":       module(zero, []byte{5, 0x70, 1, 0xd2, 1, 0x0b}, zero),
		"its offset":     module(zero, []byte{0, 0x23, 1, 0x0b, 1, 0}, zero),
		"data":           module(zero, element, []byte{0x23, 1}),
		"global":         module([]byte{0x23, 1}, element, zero),
	} {
		if _, err := Rewrite(b, roomy); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRewriteReserved has names that are the engine's.
func TestRewriteReserved(t *testing.T) {
	imports := func(name string) []byte {
		return mod(sec(sectionType, vec(functype("\x7e", "\x7e"))), sec(sectionImport, vec(cat(str("sandboxd_engine"), str(name), []byte{0, 0}))))
	}
	for name, b := range map[string][]byte{
		"checkpoint": imports("checkpoint"),
		"other":      imports("other"),
		"counter": mod(sec(sectionGlobal, vec([]byte{0x7e, 1, 0x42, 0, 0x0b})),
			sec(sectionExport, vec(cat(str("sandboxd_engine.counter"), []byte{3, 0})))),
		"twice": rewritten(t, fib()),
	} {
		var re *ReservedError
		if w, err := Rewrite(b, roomy); !errors.As(err, &re) || !errors.Is(err, ErrReserved) || w.Module != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRewriteTables(t *testing.T) {
	o := Options{MaxTables: 2, MaxTable: 300}
	for _, tt := range []struct {
		name     string
		in, want []byte
	}{
		{"no maximum", []byte{0, 1}, []byte{1, 1, 0xac, 2}},
		{"large maximum", []byte{1, 1, 0xad, 2}, []byte{1, 1, 0xac, 2}},
		{"small maximum", []byte{1, 1, 7}, []byte{1, 1, 7}},
		{"full", []byte{0, 0xac, 2}, []byte{1, 0xac, 2, 0xac, 2}},
	} {
		w, err := Rewrite(tables(tt.in), o)
		got := tables(tt.want)[len(header):]
		if err != nil || !bytes.Contains(w.Module, got) {
			t.Errorf("%s: %x, %v", tt.name, w.Module, err)
		}
	}
}

// TestRewriteTableGrow grows a table for ever: it stops at the maximum.
func TestRewriteTableGrow(t *testing.T) {
	b := mod(
		sec(sectionType, vec(functype("", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 1})),
		sec(sectionExport, vec(cat(str("grow"), []byte{0, 0}))),
		// Until table.grow says -1: grow by 100; then the size.
		sec(sectionCode, vec(fn(0x03, 0x40, 0xd0, 0x70, 0x41, 0xe4, 0, 0xfc, 15, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0xfc, 16, 0, 0x0b))),
	)
	w, err := Rewrite(b, Options{MaxTables: 1, MaxTable: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(t, w.Module, "grow")
	if err != nil || got[0] != 901 {
		t.Errorf("size %v, %v", got, err)
	}
}

func TestRewriteLimits(t *testing.T) {
	memory := func(l ...byte) []byte { return mod(sec(sectionMemory, vec(l))) }
	for _, tt := range []struct {
		name string
		b    []byte
		o    Options
		want LimitError
	}{
		{"memory", memory(0, 3), Options{MaxMemory: 2}, LimitError{"memory pages", 3, 2, false}},
		{"any memory", memory(0, 1), Options{}, LimitError{"memory pages", 1, 0, false}},
		{"tables", tables([]byte{0, 0}, []byte{0, 0}), Options{MaxTables: 1}, LimitError{"tables", 2, 1, false}},
		{"table", tables([]byte{0, 9}), Options{MaxTables: 1, MaxTable: 8}, LimitError{"table entries", 9, 8, false}},
		{"any table", tables([]byte{0, 0}), Options{}, LimitError{"tables", 1, 0, false}},
	} {
		_, err := Rewrite(tt.b, tt.o)
		var le *LimitError
		if !errors.As(err, &le) || *le != tt.want || !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := Rewrite(memory(1, 2, 0x80, 0x80, 4), Options{MaxMemory: 2}); err != nil {
		t.Errorf("a maximum is not a minimum: %v", err)
	}
}

// TestRewriteRefuses has code that another reader could take for other
// instructions, or that is not part of WebAssembly 2.0.
func TestRewriteRefuses(t *testing.T) {
	body := func(code ...byte) []byte {
		return mod(sec(sectionType, vec(functype("", ""))), sec(sectionFunction, vec(num(0))), sec(sectionCode, vec(fn(code...))))
	}
	for name, code := range map[string][]byte{
		"unknown":           {0x06, 0x0b},
		"tail call":         {0x12, 0, 0x0b},
		"atomic":            {0xfe, 0x03, 0, 0x0b},
		"unknown bulk":      {0xfc, 18, 0x0b},
		"unknown vector":    {0xfd, 0x9a, 1, 0x0b},
		"relaxed vector":    {0xfd, 0x80, 2, 0x0b},
		"long vector":       {0xfd, 0x8c, 0, 0x0b},
		"longer vector":     {0xfd, 0x8c, 0x81, 0, 0x0b},
		"long bulk":         {0xfc, 0x80, 0, 0x0b},
		"after the end":     {0x0b, 0x0b},
		"no end":            {0x02, 0x40, 0x0b},
		"select of two":     {0x1c, 2, 0x7f, 0x7f, 0x0b},
		"block type":        {0x02, 0x41, 0x0b, 0x0b},
		"memory index":      {0x3f, 1, 0x0b},
		"branch targets":    {0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x0b},
		"ends in a number":  {0x41, 0x0b},
		"ends in a vector":  {0xfd, 12, 0x0b},
		"constant too long": {0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x0b},
	} {
		if w, err := Rewrite(body(code...), roomy); !errors.Is(err, ErrFormat) || w.Module != nil {
			t.Errorf("%s: %x, %v", name, w.Module, err)
		}
	}
}
