package wasmbin

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

var anything = Options{MaxMemory: 1 << 16, MaxTables: 8, MaxTable: 1 << 20}

// stateModule returns a module with a table, a segment of each kind, the
// globals and memories given, and a function of that code.
func stateModule(memories, globals [][]byte, code ...byte) []byte {
	return mod(
		sec(sectionType, vec(functype("", ""))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 5})),
		sec(sectionMemory, vec(memories...)),
		sec(sectionGlobal, vec(globals...)),
		sec(sectionElement, vec(cat([]byte{1, 0}, vec(num(0))))),
		sec(sectionDataCount, num(1)),
		sec(sectionCode, vec(fn(append(code, opEnd)...))),
		sec(sectionData, vec(cat([]byte{1}, str("data")))),
	)
}

var oneMemory = [][]byte{{1, 1, 3}}

// TestUnimageable has a module for each reason, and their harmless neighbours.
func TestUnimageable(t *testing.T) {
	three := []byte{opI32Const, 0, opI32Const, 0, opI32Const, 0}
	null := []byte{opI32Const, 0, 0xd0, 0x70}
	for _, tt := range []struct {
		name string
		b    []byte
		want UnimageableError // empty: none
	}{
		{"nothing", stateModule(oneMemory, nil), UnimageableError{}},
		{"no memory", stateModule(nil, nil), UnimageableError{NoMemory, "it declares none"}},
		{"memory for nothing", stateModule([][]byte{{1, 0, 0}}, nil), UnimageableError{NoMemory, "its maximum is 0 pages"}},
		{"two memories", stateModule([][]byte{{0, 1}, {0, 1}}, nil), UnimageableError{ManyMemories, "it has 2"}},
		{"table.get", stateModule(oneMemory, nil, opI32Const, 0, opTableGet, 0, opDrop), UnimageableError{}},
		{"table.size", stateModule(oneMemory, nil, opBulk, 16, 0, opDrop), UnimageableError{}},
		{"memory.init", stateModule(oneMemory, nil, cat(three, []byte{opBulk, 8, 0, 0})...), UnimageableError{}},
		{"table.set", stateModule(oneMemory, nil, cat(null, []byte{opTableSet, 0})...), UnimageableError{TableChanged, "table.set in function 0"}},
		{"table.init", stateModule(oneMemory, nil, cat(three, []byte{opBulk, 12, 0, 0})...), UnimageableError{TableChanged, "table.init in function 0"}},
		{"table.copy", stateModule(oneMemory, nil, cat(three, []byte{opBulk, 14, 0, 0})...), UnimageableError{TableChanged, "table.copy in function 0"}},
		{"table.grow", stateModule(oneMemory, nil, 0xd0, 0x70, opI32Const, 0, opBulk, 15, 0, opDrop), UnimageableError{TableChanged, "table.grow in function 0"}},
		{"table.fill", stateModule(oneMemory, nil, cat(null, []byte{opI32Const, 0, opBulk, 17, 0})...), UnimageableError{TableChanged, "table.fill in function 0"}},
		{"data.drop", stateModule(oneMemory, nil, opBulk, 9, 0), UnimageableError{SegmentDropped, "data.drop in function 0"}},
		{"elem.drop", stateModule(oneMemory, nil, opBulk, 13, 0), UnimageableError{SegmentDropped, "elem.drop in function 0"}},
		{"constant vector", stateModule(oneMemory, [][]byte{cat([]byte{0x7b, 0, 0xfd, 12}, make([]byte, 16), []byte{opEnd})}), UnimageableError{}},
		{"mutable vector", stateModule(oneMemory, [][]byte{cat([]byte{0x7b, 1, 0xfd, 12}, make([]byte, 16), []byte{opEnd})}), UnimageableError{GlobalType, "mutable global 0 is v128"}},
		{"mutable reference", stateModule(oneMemory, [][]byte{{0x7f, 0, opI32Const, 0, opEnd}, {0x70, 1, 0xd0, 0x70, opEnd}}), UnimageableError{GlobalType, "mutable global 1 is funcref"}},
		{"many globals", stateModule(oneMemory, slices.Repeat([][]byte{{0x7f, 1, opI32Const, 0, opEnd}}, 1001)), UnimageableError{ManyGlobals, "1001 are mutable, at most 1000 can be put back"}},
		{"all globals", stateModule(oneMemory, slices.Repeat([][]byte{{0x7f, 1, opI32Const, 0, opEnd}}, 1000)), UnimageableError{}},
		{"constant imported", mod(sec(sectionImport, vec(cat(str("a"), str("b"), []byte{3, 0x7f, 0}))), sec(sectionMemory, vec(oneMemory...))), UnimageableError{}},
		{"global imported", mod(sec(sectionImport, vec(cat(str("a"), str("b"), []byte{3, 0x7f, 1}))), sec(sectionMemory, vec(oneMemory...))), UnimageableError{ImportedState, `mutable global "b" of "a"`}},
		{"memory imported", mod(sec(sectionImport, vec(cat(str("a"), str("b"), []byte{2, 0, 1})))), UnimageableError{ImportedState, `memory "b" of "a"`}},
		{"table imported", mod(sec(sectionImport, vec(cat(str("a"), str("b"), []byte{1, 0x70, 0, 1}))), sec(sectionMemory, vec(oneMemory...))), UnimageableError{ImportedState, `table "b" of "a"`}},
	} {
		r, err := Rewrite(tt.b, anything)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := UnimageableError{}
		if r.Unimageable != nil {
			got = *r.Unimageable
		}
		if got != tt.want {
			t.Errorf("%s: %+v, not %+v", tt.name, got, tt.want)
		}
		if valid(t, tt.b) != valid(t, r.Module) {
			t.Errorf("%s: valid %t, and %t when it is rewritten", tt.name, valid(t, tt.b), valid(t, r.Module))
		}
	}
}

// TestExposed reads and sets every mutable global of a module from outside, and
// grows its memory beyond the maximum that it declared.
func TestExposed(t *testing.T) {
	b := stateModule(oneMemory, [][]byte{
		{0x7f, 1, opI32Const, 0x7b, opEnd},
		{0x7e, 0, opI64Const, 1, opEnd},
		{0x7e, 1, opI64Const, 2, opEnd},
		{0x7d, 1, 0x43, 0, 0, 0x80, 0x3f, opEnd},
		{0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, opEnd},
	})
	r, err := Rewrite(b, anything)
	if err != nil {
		t.Fatal(err)
	}
	want := []Global{{0, I32}, {2, I64}, {3, F32}, {4, F64}}
	if !slices.Equal(r.Globals, want) || r.MaxMemory != 3<<16 || r.Unimageable != nil {
		t.Fatalf("%+v", r.Imaging)
	}
	ctx := t.Context()
	w := wazero.NewRuntime(ctx)
	defer w.Close(ctx)
	newMeter(quantum).register(t, w)
	m, err := w.Instantiate(ctx, r.Module)
	if err != nil {
		t.Fatal(err)
	}
	for i, before := range []uint64{0xfffffffb, 2, 0x3f800000, 0x3ff0000000000000} {
		g, ok := m.ExportedGlobal(want[i].Name()).(api.MutableGlobal)
		if !ok || g.Get() != before {
			t.Fatalf("global %d is not there, or not %#x", want[i].Index, before)
		}
		if g.Set(7); g.Get() != 7 {
			t.Errorf("global %d is %#x", want[i].Index, g.Get())
		}
	}
	if _, ok := m.Memory().Grow(9); !ok {
		t.Error("the memory does not grow beyond its declared maximum")
	}
}

func TestReservedExports(t *testing.T) {
	for _, name := range []string{CounterExport, Global{Index: 7}.Name(), EngineModule + ".other"} {
		b := mod(sec(sectionMemory, vec(oneMemory...)), sec(sectionExport, vec(cat(str(name), []byte{2, 0}))))
		if _, err := Rewrite(b, anything); !errors.Is(err, ErrReserved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExposingKeepsValidity rewrites random modules, half of them not valid: an
// index that does not exist, a type that does not fit. None becomes valid, and
// none becomes invalid.
func TestExposingKeepsValidity(t *testing.T) {
	seen := map[string]int{}
	enough.Check(t, func(rt *rapid.T) {
		b := randomState(rt)
		r, err := Rewrite(b, anything)
		if err != nil && (r.Module != nil || r.Globals != nil) {
			rt.Fatalf("an error and a module: %v", err)
		}
		before := valid(t, b)
		if err != nil {
			if before {
				rt.Fatalf("%x is valid, and refused: %v", b, err)
			}
			seen["refused"]++
			return
		}
		if after := valid(t, r.Module); before != after {
			rt.Fatalf("%x: valid %t, and %t when it is rewritten to %x", b, before, after, r.Module)
		}
		seen[fmt.Sprintf("valid %t, imaged %t", before, r.Unimageable == nil)]++
	}, func() string {
		for _, kind := range []string{"refused", "valid true, imaged true", "valid true, imaged false", "valid false, imaged true"} {
			if seen[kind] == 0 {
				return fmt.Sprintf("no module of kind %q: %v", kind, seen)
			}
		}
		return ""
	})
}

// randomState draws a module with globals, exports and code that uses them.
func randomState(rt *rapid.T) []byte {
	consts := map[byte][]byte{
		0x7f: {opI32Const, 1}, 0x7e: {opI64Const, 1}, 0x7d: {0x43, 0, 0, 0, 0}, 0x7c: {0x44, 0, 0, 0, 0, 0, 0, 0, 0}, 0x70: {0xd0, 0x70},
	}
	types := []byte{0x7f, 0x7e, 0x7d, 0x7c, 0x70}
	var globals, exports [][]byte
	var code []byte
	n := rapid.IntRange(0, 4).Draw(rt, "globals")
	for range n {
		kind := rapid.SampledFrom(types[:rapid.SampledFrom([]int{4, 4, 4, 5}).Draw(rt, "types")]).Draw(rt, "type")
		globals = append(globals, cat([]byte{kind, byte(rapid.IntRange(0, 1).Draw(rt, "mutable"))}, consts[kind], []byte{opEnd}))
	}
	wild := rapid.IntRange(0, 3).Draw(rt, "wild") == 0 // indices up to one too many
	most := func(n int) int {
		if wild {
			return n + 1
		}
		return n
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "exports") {
		if most(n) > 0 {
			exports = append(exports, cat(str(fmt.Sprint(i)), []byte{3}, num(rapid.IntRange(0, most(n)-1).Draw(rt, "export"))))
		}
	}
	for range rapid.IntRange(0, 4).Draw(rt, "instructions") {
		switch rapid.IntRange(0, 5).Draw(rt, "instruction") {
		case 0, 1:
			if most(n) > 0 {
				code = append(code, opGlobalGet, byte(rapid.IntRange(0, most(n)-1).Draw(rt, "index")), opDrop)
			}
		case 2:
			if most(n) > 0 {
				code = append(code, opI32Const, 5, opGlobalSet, byte(rapid.IntRange(0, most(n)-1).Draw(rt, "index")))
			}
		case 3:
			code = append(code, opI32Const, 0, opMemoryGrow, 0, opDrop)
		case 4:
			code = append(code, opBulk, 9, byte(rapid.IntRange(0, most(1)-1).Draw(rt, "segment")))
		case 5:
			code = append(code, opI32Const, 0, opTableGet, byte(rapid.IntRange(0, most(1)-1).Draw(rt, "table")), opDrop)
		}
	}
	memory := rapid.SampledFrom([][][]byte{oneMemory, oneMemory, {{0, 0}}, {{1, 0, 0}}, nil}).Draw(rt, "memory")
	return mod(
		sec(sectionType, vec(functype("", ""))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 5})),
		sec(sectionMemory, vec(memory...)),
		sec(sectionGlobal, vec(globals...)),
		sec(sectionExport, vec(exports...)),
		sec(sectionDataCount, num(1)),
		sec(sectionCode, vec(fn(append(code, opEnd)...))),
		sec(sectionData, vec(cat([]byte{1}, str("data")))),
	)
}

// FuzzImaging: an error or a module, and never a valid one of an invalid one.
func FuzzImaging(f *testing.F) {
	f.Add(stateModule(oneMemory, [][]byte{{0x7f, 1, opI32Const, 0x7b, opEnd}}))
	f.Add(stateModule(oneMemory, nil, opBulk, 9, 0))
	f.Add(mod(sec(sectionMemory, vec([]byte{0, 1})), sec(sectionExport, vec(cat(str("m"), []byte{2, 0})))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Rewrite(b, Options{MaxMemory: 16, MaxTables: 2, MaxTable: 100})
		if (err != nil) == (r.Module != nil) {
			t.Fatalf("%v and %d bytes", err, len(r.Module))
		}
		// wazero takes an empty custom section for a broken one where nothing follows it.
		if err == nil && !valid(t, cat(b, custom("x", []byte{0}))) && valid(t, r.Module) {
			t.Fatal("what was not valid is now")
		}
	})
}
