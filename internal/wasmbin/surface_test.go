package wasmbin

import (
	"errors"
	"os"
	"reflect"
	"testing"
)

// What is declared is read the same with the code and without.
func TestSurface(t *testing.T) {
	modules := map[string][]byte{
		"fib": fib(), "indirect": indirect(), "tables": tables([]byte{0, 1}, []byte{1, 0, 2}),
		"custom": mod(custom("tool.yaml", []byte("name: x\n")), sec(sectionMemory, vec([]byte{0, 1}))),
	}
	for _, file := range wazeroModules(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		modules[file] = b
	}
	for name, b := range modules {
		whole, err := Parse(b)
		if err != nil {
			continue // for its code, it may be
		}
		if surface, err := Surface(b); err != nil || !reflect.DeepEqual(surface, whole) {
			t.Errorf("%s: %v, or its surface is read otherwise", name, err)
		}
	}
}

// What is wrong with the declarations is found, what is wrong with the code is
// not looked at.
func TestSurfaceErrors(t *testing.T) {
	if _, err := Surface(append([]byte("\x00asm"), component...)); !errors.Is(err, ErrComponent) {
		t.Errorf("a component: %v", err)
	}
	format := func(b []byte) bool {
		_, err := Surface(b)
		_, ok := errors.AsType[*FormatError](err)
		return ok
	}
	for name, b := range map[string][]byte{
		"nothing":            {},
		"an unknown section": mod([]byte{13, 0}),
		"no function type":   mod(sec(sectionType, vec([]byte{1}))),
		"left over":          mod(sec(sectionType, cat(vec(), []byte{0}))),
		"cut off":            mod([]byte{sectionCode, 9}),
		"no such function":   mod(sec(sectionExport, vec(cat(str("f"), []byte{0, 0})))),
	} {
		if !format(b) {
			t.Errorf("%s is read", name)
		}
	}
	broken := mod(sec(sectionCode, []byte{1, 0xff}))
	if _, err := Parse(broken); err == nil || format(broken) {
		t.Errorf("code: parsed %v", err)
	}
}
