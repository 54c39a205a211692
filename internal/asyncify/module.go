package asyncify

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
)

// The functions that asyncify adds to a module (Binaryen, src/passes/Asyncify.cpp).
const (
	StartUnwind = "asyncify_start_unwind"
	StopUnwind  = "asyncify_stop_unwind"
	StartRewind = "asyncify_start_rewind"
	StopRewind  = "asyncify_stop_rewind"
	GetState    = "asyncify_get_state"
)

// added returns the functions with their types.
func added() map[string]wasmbin.FuncType {
	at := wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32}}
	return map[string]wasmbin.FuncType{
		StartUnwind: at, StopUnwind: {}, StartRewind: at, StopRewind: {},
		GetState: {Results: []wasmbin.ValueType{wasmbin.I32}},
	}
}

// fit parses a module that asyncify is to be applied to.
func fit(module []byte) (*wasmbin.Module, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	names := added()
	reads := slices.ContainsFunc(m.Imports, func(i wasmbin.Import) bool {
		return i.Module == "wasi_snapshot_preview1" && i.Name == "fd_read"
	})
	if !reads {
		return nil, fmt.Errorf("%w: it does not import fd_read", ErrModule)
	}
	for _, e := range m.Exports {
		if _, taken := names[e.Name]; taken {
			return nil, fmt.Errorf("%w: it exports %s itself", ErrModule, e.Name)
		}
	}
	return m, nil
}

// check holds a result to what asyncify changes of the interface of a module:
// nothing but that the functions are added.
func check(original *wasmbin.Module, out []byte) error {
	m, err := wasmbin.Parse(out)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrResult, err)
	}
	have := map[string]bool{}
	for _, i := range original.Imports {
		have[describe(i)] = true
	}
	for _, i := range m.Imports {
		if !have[describe(i)] {
			return fmt.Errorf("%w: it imports %s", ErrResult, describe(i))
		}
	}
	want := added()
	for _, e := range original.ExportedFunctions() {
		want[e.Name] = e.Type
	}
	got := map[string]wasmbin.FuncType{}
	for _, e := range m.ExportedFunctions() {
		got[e.Name] = e.Type
	}
	for name, f := range want {
		if g, ok := got[name]; !ok || g.String() != f.String() {
			return fmt.Errorf("%w: it does not export %s %s", ErrResult, name, f)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%w: it exports more functions", ErrResult)
	}
	if !reflect.DeepEqual(m.Memories, original.Memories) {
		return fmt.Errorf("%w: its memories are others", ErrResult)
	}
	return nil
}

// describe returns an import as a text.
func describe(i wasmbin.Import) string {
	return fmt.Sprintf("%s %q.%q %s %v %s %t", i.Kind, i.Module, i.Name, i.Type, i.Limits, i.Value, i.Mutable)
}
