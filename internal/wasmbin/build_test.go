package wasmbin

import (
	"encoding/binary"
	"testing"

	"github.com/tetratelabs/wazero"
)

// Helpers that assemble modules by hand.

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func num(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func vec(items ...[]byte) []byte { return cat(num(len(items)), cat(items...)) }

func sized(b []byte) []byte { return cat(num(len(b)), b) }

func str(s string) []byte { return sized([]byte(s)) }

func sec(id byte, body []byte) []byte { return cat([]byte{id}, sized(body)) }

func mod(sections ...[]byte) []byte { return cat(header, cat(sections...)) }

func custom(name string, data []byte) []byte { return sec(sectionCustom, cat(str(name), data)) }

func fn(code ...byte) []byte { return sized(cat(vec(), code)) }

func functype(params, results string) []byte {
	return cat([]byte{0x60}, str(params), str(results))
}

// fibCode calls itself twice and has no loop.
var fibCode = []byte{
	0x20, 0, 0x41, 2, 0x48, // local.get 0, i32.const 2, i32.lt_s
	0x04, 0x7f, 0x20, 0, // if (result i32), local.get 0
	0x05,                            // else
	0x20, 0, 0x41, 1, 0x6b, 0x10, 0, // fib(n-1)
	0x20, 0, 0x41, 2, 0x6b, 0x10, 0, // fib(n-2)
	0x6a, 0x0b, 0x0b, // i32.add, end, end
}

func fib() []byte { return fibOf(fibCode) }

// loopFib is fib after a loop that is empty.
func loopFib() []byte { return fibOf(cat([]byte{0x03, 0x40, 0x0b}, fibCode)) }

func fibOf(code []byte) []byte {
	return mod(
		sec(sectionType, vec(functype("\x7f", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionExport, vec(cat(str("fib"), []byte{0, 0}))),
		sec(sectionCode, vec(fn(code...))),
	)
}

// indirect is fib through a table.
func indirect() []byte {
	code := append([]byte{}, fibCode...)
	out := []byte{}
	for i := 0; i < len(code); i++ {
		if code[i] == 0x10 && i+1 < len(code) && code[i+1] == 0 && i > 0 && code[i-1] == 0x6b {
			out = append(out, 0x41, 0, 0x11, 0, 0) // i32.const 0, call_indirect
			i++
			continue
		}
		out = append(out, code[i])
	}
	return mod(
		sec(sectionType, vec(functype("\x7f", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 1})),
		sec(sectionExport, vec(cat(str("fib"), []byte{0, 0}))),
		sec(sectionElement, vec([]byte{0, 0x41, 0, 0x0b, 1, 0})),
		sec(sectionCode, vec(fn(out...))),
	)
}

// table returns a module with tables of the given limits.
func tables(limits ...[]byte) []byte {
	var items [][]byte
	for _, l := range limits {
		items = append(items, cat([]byte{0x70}, l))
	}
	return mod(sec(sectionTable, vec(items...)))
}

// valid reports whether wazero compiles a module.
func valid(t testing.TB, b []byte) bool {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(256))
	defer r.Close(ctx)
	_, err := r.CompileModule(ctx, b)
	return err == nil
}
