package wasmbin

import (
	"errors"
	"os"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	b := mod(
		custom("first", []byte("1")),
		sec(sectionType, vec(functype("", ""), functype("\x7f\x7e", "\x7c"))),
		sec(sectionImport, vec(
			cat(str("env"), str("f"), []byte{0, 1}),
			cat(str("env"), str("t"), []byte{1, 0x6f, 1, 2, 3}),
			cat(str("env"), str("m"), []byte{2, 0, 1}),
			cat(str("env"), str("g"), []byte{3, 0x7f, 1}),
		)),
		sec(sectionFunction, vec(num(0))),
		sec(sectionTable, vec([]byte{0x70, 0, 5})),
		sec(sectionGlobal, vec([]byte{0x7e, 0, 0x42, 0x7f, 0x0b})),
		sec(sectionExport, vec(
			cat(str("run"), []byte{0, 1}), cat(str("mem"), []byte{2, 0}), cat(str("imported"), []byte{0, 0}),
		)),
		sec(sectionStart, num(1)),
		sec(sectionElement, vec([]byte{0, 0x41, 0, 0x0b, 1, 1}, []byte{5, 0x70, 2, 0xd0, 0x70, 0x0b, 0xd2, 1, 0x0b})),
		sec(sectionDataCount, num(1)),
		sec(sectionCode, vec(fn(0x0b))),
		sec(sectionData, vec(cat([]byte{1}, str("data")))),
		custom("last", nil),
	)
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	binary := FuncType{Params: []ValueType{I32, I64}, Results: []ValueType{F64}}
	want := &Module{
		Imports: []Import{
			{Module: "env", Name: "f", Kind: KindFunc, Type: binary},
			{Module: "env", Name: "t", Kind: KindTable, Value: ExternRef, Limits: Limits{Min: 2, Max: 3, HasMax: true}},
			{Module: "env", Name: "m", Kind: KindMemory, Limits: Limits{Min: 1}},
			{Module: "env", Name: "g", Kind: KindGlobal, Value: I32, Mutable: true},
		},
		Exports: []Export{
			{Name: "run", Kind: KindFunc, Index: 1},
			{Name: "mem", Kind: KindMemory},
			{Name: "imported", Kind: KindFunc, Type: binary},
		},
		Memories: []Memory{{Limits: Limits{Min: 1}, Imported: true}},
		Tables: []Table{
			{Elem: ExternRef, Limits: Limits{Min: 2, Max: 3, HasMax: true}, Imported: true},
			{Elem: FuncRef, Limits: Limits{Min: 5}},
		},
		Custom:    []Custom{{Name: "first", Data: []byte("1")}, {Name: "last", Data: []byte{}}},
		Functions: 1, Start: true,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	if f := m.ExportedFunctions(); len(f) != 2 || f[1].Type.String() != "(i32,i64)->(f64)" {
		t.Errorf("functions %v", f)
	}
	if data, n := m.CustomSection("first"); string(data) != "1" || n != 1 {
		t.Errorf("section %q %d", data, n)
	}
	sections, err := split(b)
	if err != nil {
		t.Fatal(err)
	}
	boundary := map[int]bool{8: true}
	for _, s := range sections {
		boundary[s.start] = true
	}
	for i := range b {
		if _, err := Parse(b[:i]); err == nil && !boundary[i] {
			t.Errorf("the first %d bytes are accepted", i)
		}
	}
}

func TestParseComponent(t *testing.T) {
	_, err := Parse([]byte("\x00asm\x0d\x00\x01\x00"))
	if !errors.Is(err, ErrComponent) || !strings.Contains(err.Error(), "core module") {
		t.Errorf("%v", err)
	}
}

func TestParseRefused(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	types := sec(sectionType, vec(functype("", "")))
	funcs := sec(sectionFunction, vec(num(0)))
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrFormat},
		{"text", []byte("(module)"), ErrFormat},
		{"version", []byte("\x00asm\x02\x00\x00\x00"), ErrFormat},
		{"section size", cat(header, []byte{1}, huge), ErrFormat},
		{"unknown section", mod(sec(14, nil)), ErrFormat},
		{"order", mod(funcs, types), ErrFormat},
		{"twice", mod(types, types), ErrFormat},
		{"left over", mod(sec(sectionType, cat(vec(), []byte{0}))), ErrFormat},
		{"number too long", mod(sec(sectionType, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0})), ErrFormat},
		{"number too large", mod(sec(sectionType, []byte{0xff, 0xff, 0xff, 0xff, 0x1f})), ErrFormat},
		{"types", mod(sec(sectionType, huge)), ErrFormat},
		{"parameters", mod(sec(sectionType, cat(num(1), []byte{0x60}, huge))), ErrFormat},
		{"many parameters", mod(sec(sectionType, vec(functype(strings.Repeat("\x7f", 1001), "")))), ErrLimit},
		{"imports", mod(sec(sectionImport, huge)), ErrFormat},
		{"import name", mod(sec(sectionImport, cat(num(1), huge))), ErrFormat},
		{"name not UTF-8", mod(sec(sectionImport, vec(cat(str("\xff"), str(""), []byte{0, 0})))), ErrFormat},
		{"functions", mod(types, sec(sectionFunction, huge)), ErrFormat},
		{"no type", mod(sec(sectionFunction, vec(num(0)))), ErrFormat},
		{"no code", mod(types, funcs), ErrFormat},
		{"tables", mod(sec(sectionTable, huge)), ErrFormat},
		{"many tables", mod(sec(sectionTable, cat(num(101), []byte(strings.Repeat("\x70\x00\x00", 101))))), ErrLimit},
		{"limits upside down", tables([]byte{1, 2, 1}), ErrFormat},
		{"shared", mod(sec(sectionMemory, vec([]byte{3, 1, 1}))), ErrFormat},
		{"64-bit memory", mod(sec(sectionMemory, vec([]byte{4, 1}))), ErrFormat},
		{"memory", mod(sec(sectionMemory, vec([]byte{0, 0x81, 0x80, 0x04}))), ErrLimit},
		{"exports", mod(sec(sectionExport, huge)), ErrFormat},
		{"export of nothing", mod(sec(sectionExport, vec(cat(str("f"), []byte{0, 0})))), ErrFormat},
		{"start", mod(sec(sectionStart, num(0))), ErrFormat},
		{"elements", mod(sec(sectionElement, cat(num(1), []byte{1, 0}, huge))), ErrFormat},
		{"element kind", mod(sec(sectionElement, cat(num(1), []byte{8}))), ErrFormat},
		{"expression", mod(sec(sectionGlobal, vec([]byte{0x7f, 0, 0x10, 0, 0x0b}))), ErrFormat},
		{"bodies", mod(types, funcs, sec(sectionCode, huge)), ErrFormat},
		{"body size", mod(types, funcs, sec(sectionCode, cat(num(1), huge))), ErrFormat},
		{"no end", mod(types, funcs, sec(sectionCode, vec(fn(0x01)))), ErrFormat},
		{"locals", mod(types, funcs, sec(sectionCode, vec(sized(cat(vec(cat(huge, []byte{0x7f})), []byte{0x0b}))))), ErrLimit},
		{"local declarations", mod(types, funcs, sec(sectionCode, vec(sized(huge)))), ErrFormat},
		{"data", mod(sec(sectionData, huge)), ErrFormat},
		{"data size", mod(sec(sectionData, cat(num(1), []byte{1}, huge))), ErrFormat},
		{"data count", mod(sec(sectionDataCount, num(1)), sec(sectionData, vec())), ErrFormat},
		{"custom name", mod(sec(sectionCustom, huge)), ErrFormat},
		{"name map", mod(custom("name", cat([]byte{1}, sized(huge)))), ErrFormat},
		{"local names", mod(custom("name", cat([]byte{2}, sized(cat(num(1), num(0), huge))))), ErrFormat},
		{"name size", mod(custom("name", cat([]byte{0}, huge))), ErrFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m, err := Parse(tt.b); !errors.Is(err, tt.want) || m != nil {
				t.Errorf("%+v, %v, want %v", m, err, tt.want)
			}
		})
	}
}

// TestParseAllocation parses modules that claim much: what is allocated stays
// in proportion to what is there.
func TestParseAllocation(t *testing.T) {
	many := strings.Repeat("\x60\x00\x00", 200_000)
	for name, b := range map[string][]byte{
		"types":  mod(sec(sectionType, cat(num(200_000), []byte(many)))),
		"locals": mod(sec(sectionType, vec(functype("", ""))), sec(sectionFunction, vec(num(0))), sec(sectionCode, vec(sized([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b})))),
		"custom": cat(header, []byte(strings.Repeat("\x00\x01\x00", 9_000))),
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		_, err := Parse(b)
		goruntime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(len(b))*128+1<<16 {
			t.Errorf("%s: %d bytes allocated for %d (%v)", name, got, len(b), err)
		}
	}
}

func TestSigned(t *testing.T) {
	for _, tt := range []struct {
		b    string
		bits uint
		want int64
		ok   bool
	}{
		{"\x00", 32, 0, true},
		{"\x7f", 32, -1, true},
		{"\x40", 33, -64, true},
		{"\x80\x80\x80\x80\x78", 32, -1 << 31, true},
		{"\xff\xff\xff\xff\x07", 32, 1<<31 - 1, true},
		{"\xff\xff\xff\xff\x0f", 32, 0, false},
		{"\x80\x80\x80\x80\x70", 32, 0, false},
		{"\x80\x80\x80\x80\x80\x00", 32, 0, false},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 64, -1 << 63, true},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 64, 1<<63 - 1, true},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 64, 0, false},
		{"\xff\xff\xff\xff\x0f", 33, 1<<32 - 1, true},
		{"\x80", 32, 0, false},
	} {
		r := &reader{b: []byte(tt.b)}
		got := r.signed(tt.bits)
		if (r.err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%x as s%d: %d, %v", tt.b, tt.bits, got, r.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if (err == nil) == (m == nil) {
			t.Fatalf("module %v, error %v", m, err)
		}
		if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrComponent) {
			t.Fatalf("error is a %T", err)
		}
	})
}

// FuzzRewrite rewrites modules: the result is one that wazero accepts if and only
// if it accepts the module.
func FuzzRewrite(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	o := Options{MaxMemory: 16, MaxTables: 4, MaxTable: 1000}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Rewrite(b, o)
		if (err == nil) == (w.Module == nil) {
			t.Fatalf("module %v, error %v", w.Module, err)
		}
		if err == nil && valid(t, b) != valid(t, w.Module) {
			t.Fatalf("%x became %x: valid %v, then %v", b, w.Module, valid(t, b), valid(t, w.Module))
		}
	})
}

// seeds returns small modules: those above and some that come with wazero.
func seeds(t testing.TB) [][]byte {
	list := [][]byte{fib(), indirect(), tables([]byte{0, 1}, []byte{1, 1, 9}), mod()}
	for i, file := range wazeroModules(t) {
		if i%37 != 0 {
			continue
		}
		if b, err := os.ReadFile(file); err == nil && len(b) < 3000 {
			list = append(list, b)
		}
	}
	return list
}
