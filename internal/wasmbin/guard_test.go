package wasmbin

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

var roomy = GuardOptions{MaxMemory: 1 << 16, MaxTables: 8, MaxTable: 1 << 20}

// call runs an exported function.
func call(t *testing.T, b []byte, name string, args ...uint64) ([]uint64, error) {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
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
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	defer r.Close(t.Context())
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

// TestGuardInterrupts runs recursion that would take until long after the end
// of the test. Without Guard the call cannot be stopped, and neither can the
// process, so that is not tried here.
func TestGuardInterrupts(t *testing.T) {
	for name, b := range map[string][]byte{"direct": fib(), "indirect": indirect()} {
		guarded, err := Guard(b, roomy)
		if err != nil {
			t.Fatal(err)
		}
		if took, err := interrupted(t, guarded, "fib", 60); err == nil || took > 5*time.Second {
			t.Errorf("%s: took %v: %v", name, took, err)
		}
		for n, want := range []uint64{0, 1, 1, 2, 3, 5, 8, 13} {
			got, err := call(t, guarded, "fib", uint64(n))
			if err != nil || got[0] != want {
				t.Errorf("%s: fib(%d) is %v, %v", name, n, got, err)
			}
		}
	}
}

func TestGuardInserts(t *testing.T) {
	types := sec(sectionType, vec(functype("", "")))
	two := func(first []byte) []byte {
		return mod(types, sec(sectionFunction, vec(num(0), num(0))), sec(sectionCode, vec(first, fn(0x0b))))
	}
	local := func(code ...byte) []byte { return sized(cat(vec([]byte{2, 0x7f}, []byte{1, 0x7e}), code)) }
	for _, tt := range []struct {
		name        string
		first, want []byte
	}{
		{"no call", fn(0x01, 0x0b), fn(0x01, 0x0b)},
		{"call", fn(0x10, 1, 0x0b), fn(0x03, 0x40, 0x0b, 0x10, 1, 0x0b)},
		{"locals", local(0x10, 1, 0x0b), local(0x03, 0x40, 0x0b, 0x10, 1, 0x0b)},
		{"loop first", fn(0x03, 0x40, 0x10, 1, 0x0b, 0x0b), fn(0x03, 0x40, 0x10, 1, 0x0b, 0x0b)},
		{"loop later", fn(0x01, 0x03, 0x40, 0x10, 1, 0x0b, 0x0b), fn(0x03, 0x40, 0x0b, 0x01, 0x03, 0x40, 0x10, 1, 0x0b, 0x0b)},
		{"block first", fn(0x02, 0x40, 0x03, 0x40, 0x10, 1, 0x0b, 0x0b, 0x0b), fn(0x03, 0x40, 0x0b, 0x02, 0x40, 0x03, 0x40, 0x10, 1, 0x0b, 0x0b, 0x0b)},
		{"a constant that looks like a call", fn(0x41, 0x10, 0x1a, 0x0b), fn(0x41, 0x10, 0x1a, 0x0b)},
		{"a vector that looks like a call", fn(cat([]byte{0xfd, 12}, bytes.Repeat([]byte{0x10}, 16), []byte{0x1a, 0x0b})...), fn(cat([]byte{0xfd, 12}, bytes.Repeat([]byte{0x10}, 16), []byte{0x1a, 0x0b})...)},
	} {
		got, err := Guard(two(tt.first), roomy)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := two(tt.want); !bytes.Equal(got, want) || !valid(t, got) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
	}
}

func TestGuardTables(t *testing.T) {
	o := GuardOptions{MaxTables: 2, MaxTable: 300}
	for _, tt := range []struct {
		name     string
		in, want []byte
	}{
		{"no maximum", []byte{0, 1}, []byte{1, 1, 0xac, 2}},
		{"large maximum", []byte{1, 1, 0xad, 2}, []byte{1, 1, 0xac, 2}},
		{"small maximum", []byte{1, 1, 7}, []byte{1, 1, 7}},
		{"full", []byte{0, 0xac, 2}, []byte{1, 0xac, 2, 0xac, 2}},
	} {
		got, err := Guard(tables(tt.in), o)
		if err != nil || !bytes.Equal(got, tables(tt.want)) {
			t.Errorf("%s: %x, %v", tt.name, got, err)
		}
	}
}

// TestGuardTableGrow grows a table for ever: it stops at the maximum.
func TestGuardTableGrow(t *testing.T) {
	b := mod(
		sec(sectionType, vec(functype("", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 1})),
		sec(sectionExport, vec(cat(str("grow"), []byte{0, 0}))),
		// Until table.grow says -1: grow by 100; then the size.
		sec(sectionCode, vec(fn(0x03, 0x40, 0xd0, 0x70, 0x41, 0xe4, 0, 0xfc, 15, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0xfc, 16, 0, 0x0b))),
	)
	guarded, err := Guard(b, GuardOptions{MaxTables: 1, MaxTable: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(t, guarded, "grow")
	if err != nil || got[0] != 901 {
		t.Errorf("size %v, %v", got, err)
	}
}

func TestGuardLimits(t *testing.T) {
	memory := func(l ...byte) []byte { return mod(sec(sectionMemory, vec(l))) }
	for _, tt := range []struct {
		name string
		b    []byte
		o    GuardOptions
		want LimitError
	}{
		{"memory", memory(0, 3), GuardOptions{MaxMemory: 2}, LimitError{"memory pages", 3, 2, false}},
		{"any memory", memory(0, 1), GuardOptions{}, LimitError{"memory pages", 1, 0, false}},
		{"tables", tables([]byte{0, 0}, []byte{0, 0}), GuardOptions{MaxTables: 1}, LimitError{"tables", 2, 1, false}},
		{"table", tables([]byte{0, 9}), GuardOptions{MaxTables: 1, MaxTable: 8}, LimitError{"table entries", 9, 8, false}},
		{"any table", tables([]byte{0, 0}), GuardOptions{}, LimitError{"tables", 1, 0, false}},
	} {
		_, err := Guard(tt.b, tt.o)
		var le *LimitError
		if !errors.As(err, &le) || *le != tt.want || !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := Guard(memory(1, 2, 0x80, 0x80, 4), GuardOptions{MaxMemory: 2}); err != nil {
		t.Errorf("a maximum is not a minimum: %v", err)
	}
}

// TestGuardRefuses has code that another reader could take for other
// instructions, or that is not part of WebAssembly 2.0.
func TestGuardRefuses(t *testing.T) {
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
		if out, err := Guard(body(code...), roomy); !errors.Is(err, ErrFormat) || out != nil {
			t.Errorf("%s: %x, %v", name, out, err)
		}
	}
}
