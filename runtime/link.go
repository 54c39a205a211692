package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/tool"
)

// ErrLink: a module imports what the host does not provide, or exports not
// what its ABI demands.
var ErrLink = errors.New("module does not link")

const (
	wasiModule   = "wasi_snapshot_preview1"
	pageBytes    = 64 << 10
	maxTables    = 8
	maxTableSize = 1 << 20 // entries, 8 bytes of host memory each
)

// guard rewrites a module so that it can always be stopped and its tables
// cannot take the host's memory. The rewriting cannot turn an invalid module
// into a valid one: it adds no type, function, global or other index.
func guard(module []byte, l tool.Limits) ([]byte, error) {
	return wasmbin.Guard(module, wasmbin.GuardOptions{
		MaxTable:  maxTableSize,
		MaxTables: maxTables,
		MaxMemory: uint32(l.Memory / pageBytes),
	})
}

// linkable checks imports and exports, so that a module that cannot run is
// refused when it is loaded, by the name of what is missing.
func (e *Engine) linkable(m wazero.CompiledModule, abi tool.ABI) error {
	provided := e.wasm.Module(wasiModule).ExportedFunctionDefinitions()
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != wasiModule {
			return fmt.Errorf("%w: import %q.%q: %s", ErrLink, module, name, whyNot(module))
		}
		host, ok := provided[name]
		if !ok {
			return fmt.Errorf("%w: import %q.%q: no such function in WASI preview 1", ErrLink, module, name)
		}
		if !sameType(f, host) {
			return fmt.Errorf("%w: import %q.%q: another signature than in WASI preview 1", ErrLink, module, name)
		}
	}
	if len(m.ImportedMemories()) > 0 {
		return fmt.Errorf("%w: imports a memory: a module must have its own", ErrLink)
	}
	return exportsOf(m, abi)
}

func whyNot(module string) string {
	if strings.HasPrefix(module, "sandboxd_") {
		return "not supported yet"
	}
	return "the host provides wasi_snapshot_preview1 only"
}

func sameType(a, b api.FunctionDefinition) bool {
	return slices.Equal(a.ParamTypes(), b.ParamTypes()) && slices.Equal(a.ResultTypes(), b.ResultTypes())
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

// exportsByABI lists what each ABI demands; docs/abi.md describes it.
var exportsByABI = map[tool.ABI][]signature{
	tool.Command: {{name: "_start"}},
	tool.Reactor: {
		{name: "_initialize", optional: true},
		{name: "sandboxd_alloc", params: []api.ValueType{i32}, results: []api.ValueType{i32}},
		{name: "sandboxd_call", params: []api.ValueType{i32, i32}, results: []api.ValueType{i64}},
		{name: "sandboxd_describe", results: []api.ValueType{i64}, optional: true},
	},
}

func exportsOf(m wazero.CompiledModule, abi tool.ABI) error {
	functions := m.ExportedFunctions()
	for _, want := range exportsByABI[abi] {
		f, ok := functions[want.name]
		if !ok {
			if want.optional {
				continue
			}
			return fmt.Errorf("%w: export %q is missing: abi %s demands it", ErrLink, want.name, abi)
		}
		if !slices.Equal(f.ParamTypes(), want.params) || !slices.Equal(f.ResultTypes(), want.results) {
			return fmt.Errorf("%w: export %q has another signature than abi %s demands", ErrLink, want.name, abi)
		}
	}
	if len(m.ExportedMemories()) == 0 {
		return fmt.Errorf("%w: no memory is exported", ErrLink)
	}
	return nil
}
