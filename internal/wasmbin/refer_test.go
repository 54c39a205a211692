package wasmbin

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
)

// referring returns a module that imports one function, has two of which the second is
// exported as f, and these declarations.
func referring(globals, elements, exports [][]byte, code ...byte) []byte {
	return mod(
		sec(sectionType, vec(functype("", "\x7f"))),
		sec(sectionImport, vec(cat(str("env"), str("seven"), []byte{0, 0}))),
		sec(sectionFunction, vec(num(0), num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 5})),
		sec(sectionGlobal, vec(globals...)),
		sec(sectionExport, vec(append(exports, cat(str("f"), []byte{0, 2}))...)),
		sec(sectionElement, vec(elements...)),
		sec(sectionCode, vec(fn(opI32Const, 5, opEnd), fn(append(code, opEnd)...))),
	)
}

var (
	null   = []byte{0x70, 0, 0xd0, 0x70, opEnd}
	put    = []byte{opTableSet, 0}
	called = []byte{opI32Const, 0, opCallIndirect, 0, 0}
)

// TestReferences calls through references that code makes, of its own functions and
// of imported ones, after globals of its own.
func TestReferences(t *testing.T) {
	for name, tt := range map[string]struct {
		function byte
		want     uint64
	}{"imported": {0, 7}, "own": {1, 5}} {
		b := referring([][]byte{null}, [][]byte{{3, 0, 2, 0, 1}}, nil,
			cat([]byte{opRefFunc, tt.function, opDrop, opI32Const, 0, opRefFunc, tt.function}, put, called)...)
		ctx := t.Context()
		w := wazero.NewRuntime(ctx)
		defer w.Close(ctx)
		newMeter(quantum).register(t, w)
		_, err := w.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func() int32 { return 7 }).Export("seven").Instantiate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.Instantiate(ctx, rewritten(t, b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := m.ExportedFunction("f").Call(ctx)
		if err != nil || got[0] != tt.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestUndeclaredReferences: a module is valid when it is rewritten where it was before.
func TestUndeclaredReferences(t *testing.T) {
	code := []byte{opRefFunc, 1, opDrop, opI32Const, 1}
	declared := map[string][]byte{
		"element":             referring(nil, [][]byte{{3, 0, 1, 1}}, nil, code...),
		"expression":          referring(nil, [][]byte{{7, 0x70, 1, opRefFunc, 1, opEnd}}, nil, code...),
		"table":               referring(nil, [][]byte{{0, opI32Const, 0, opEnd, 1, 1}}, nil, code...),
		"global":              referring([][]byte{{0x70, 0, opRefFunc, 1, opEnd}}, nil, nil, code...),
		"export":              referring(nil, nil, [][]byte{cat(str("g"), []byte{0, 1})}, code...),
		"itself":              referring(nil, nil, nil, opRefFunc, 2, opDrop, opI32Const, 1),
		"another and no more": referring(nil, [][]byte{{3, 0, 1, 0}}, nil, opI32Const, 1),
	}
	for name, b := range declared {
		if !valid(t, b) || !valid(t, rewritten(t, b)) {
			t.Errorf("%s: valid %t, and %t when it is rewritten", name, valid(t, b), valid(t, rewritten(t, b)))
		}
	}
	for name, b := range map[string][]byte{
		"nowhere": referring(nil, nil, nil, code...),
		"another": referring([][]byte{null}, [][]byte{{3, 0, 1, 0}}, nil, code...),
	} {
		if _, err := Rewrite(b, roomy); valid(t, b) || !errors.Is(err, ErrFormat) {
			t.Errorf("%s: valid %t, %v", name, valid(t, b), err)
		}
	}
}
