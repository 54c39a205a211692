package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime/hostkv"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/runtime/hostoutbox"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// ErrLink: a module imports what the host does not provide, or exports not
// what its ABI demands.
var ErrLink = errors.New("module does not link")

const (
	pageBytes    = 64 << 10
	maxTables    = 8
	maxTableSize = 1 << 20 // entries, 8 bytes of host memory each
	// maxKept is what an instance may take of the host for what its module declares, in
	// bytes. A program in Go takes 0.2 MiB.
	maxKept = 32 << 20
)

// CheckLink reports whether a module can be linked and called by its ABI, by what
// it declares: it runs and compiles nothing, and does not look at the code. The
// only imports are functions of WASI preview 1 and of sandboxd's own interfaces,
// with their signatures: anything else could be satisfied by what another module
// exports, and carry its authority. Errors match [ErrLink], or are those of
// [wasmbin.Surface].
func CheckLink(module []byte, abi tool.ABI) error {
	m, err := wasmbin.Surface(module)
	if err != nil {
		return err
	}
	for _, i := range m.Imports {
		if err := checkImport(i); err != nil {
			return err
		}
	}
	return checkExports(m, abi)
}

// signatureOf looks a function up in the interfaces that the host provides.
// known reports whether it provides the import module at all.
func signatureOf(module, name string) (params, results []api.ValueType, known, ok bool) {
	switch module {
	case wasi.ModuleName:
		params, results, ok = wasi.Signature(name)
		return params, results, true, ok
	case hostmcp.ModuleName:
		params, results, ok = hostmcp.Signature(name)
		return params, results, true, ok
	case hostkv.ModuleName:
		params, results, ok = hostkv.Signature(name)
		return params, results, true, ok
	case hostoutbox.ModuleName:
		params, results, ok = hostoutbox.Signature(name)
		return params, results, true, ok
	}
	return nil, nil, false, false
}

func checkImport(i wasmbin.Import) error {
	refuse := func(why string) error {
		return fmt.Errorf("%w: import %q.%q (%s): %s", ErrLink, i.Module, i.Name, i.Kind, why)
	}
	params, results, known, ok := signatureOf(i.Module, i.Name)
	switch {
	case i.Module == wasmbin.EngineModule:
		return refuse("it is the engine's own; leave the import out")
	case !known && strings.HasPrefix(i.Module, "sandboxd_"):
		return refuse("not supported yet")
	case !known:
		return refuse("the host provides functions of " + wasi.ModuleName + " and of its own interfaces only")
	case i.Kind != wasmbin.KindFunc:
		return refuse("the host provides functions only")
	case !ok:
		return refuse("no such function in " + i.Module)
	case !sameTypes(i.Type.Params, params) || !sameTypes(i.Type.Results, results):
		return refuse("another signature than in " + i.Module)
	}
	return nil
}

// sameTypes compares types by their bytes in the binary format, which both
// packages use.
func sameTypes(a []wasmbin.ValueType, b []api.ValueType) bool {
	return slices.EqualFunc(a, b, func(x wasmbin.ValueType, y api.ValueType) bool { return byte(x) == y })
}

// signature is an exported function that an ABI demands.
type signature struct {
	name            string
	params, results []api.ValueType
	optional        bool
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// exportsOf lists what an ABI demands; docs/abi.md describes it.
func exportsOf(abi tool.ABI) []signature {
	switch abi {
	case tool.Command:
		return []signature{{name: "_start"}}
	case tool.Reactor:
		return []signature{
			{name: "_initialize", optional: true},
			{name: "sandboxd_alloc", params: []api.ValueType{i32}, results: []api.ValueType{i32}},
			{name: "sandboxd_call", params: []api.ValueType{i32, i32}, results: []api.ValueType{i64}},
			{name: "sandboxd_describe", results: []api.ValueType{i64}, optional: true},
			{name: reseedExport, results: []api.ValueType{i32}, optional: true},
		}
	case tool.MCP, tool.Extism:
	}
	return nil
}

func checkExports(m *wasmbin.Module, abi tool.ABI) error {
	memory := false
	functions := map[string]wasmbin.FuncType{}
	for _, e := range m.Exports {
		switch e.Kind {
		case wasmbin.KindFunc:
			functions[e.Name] = e.Type
		case wasmbin.KindMemory:
			memory = memory || e.Name == "memory"
		case wasmbin.KindTable, wasmbin.KindGlobal:
		}
	}
	for _, want := range exportsOf(abi) {
		f, ok := functions[want.name]
		switch {
		case !ok && want.optional:
		case !ok:
			return fmt.Errorf("%w: export %q is missing: abi %s demands it", ErrLink, want.name, abi)
		case !sameTypes(f.Params, want.params) || !sameTypes(f.Results, want.results):
			return fmt.Errorf("%w: export %q is a function %s: abi %s demands another", ErrLink, want.name, f, abi)
		}
	}
	if !memory {
		return fmt.Errorf("%w: export %q is missing: the host exchanges data through it", ErrLink, "memory")
	}
	return nil
}
