package hostmcp

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// ModuleName is the import module of the interface.
const ModuleName = "sandboxd_mcp"

// errno is the answer to a guest, with the numbers of WASI preview 1.
type errno uint32

const (
	success  errno = 0
	eFAULT   errno = 21 // a text is not in the memory
	eILSEQ   errno = 25 // not UTF-8
	eINVAL   errno = 28 // no such level; progress that is no number or not further
	eMSGSIZE errno = 35 // longer than MaxBytes
	eNOBUFS  errno = 42 // more than MaxNotes
	eNOTSUP  errno = 58 // no call is served: start-up code
)

// Find returns what a module instance serves now: its process, nil for none, and
// the notes of its call, nil outside of one.
type Find func(api.Module) (*wasi.Process, *Notes)

// function is one function of the interface. All return an errno.
type function struct {
	name   string
	params []api.ValueType
	body   func(n *Notes, m api.Memory, stack []uint64) errno
}

const (
	i32 = api.ValueTypeI32
	f64 = api.ValueTypeF64
)

func functions() []function {
	return []function{
		{"progress", []api.ValueType{f64, f64, i32, i32}, progress},
		{"log", []api.ValueType{i32, i32, i32, i32}, log},
	}
}

// Signature returns the type of a function of the interface, and whether there
// is one of that name.
func Signature(name string) (params, results []api.ValueType, ok bool) {
	for _, f := range functions() {
		if f.name == name {
			return f.params, []api.ValueType{i32}, true
		}
	}
	return nil, nil, false
}

// Instantiate registers the interface in a runtime, once. Closing the result
// takes it out again.
func Instantiate(ctx context.Context, r wazero.Runtime, find Find) (api.Closer, error) {
	b := r.NewHostModuleBuilder(ModuleName)
	for _, f := range functions() {
		b = b.NewFunctionBuilder().
			WithGoModuleFunction(bind(f, find), f.params, []api.ValueType{i32}).
			WithName(f.name).
			Export(f.name)
	}
	return b.Instantiate(ctx)
}

// bind makes a host function of a body. A guest that was stopped, or whose
// context has ended, is stopped here too.
func bind(f function, find Find) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		p, n := find(mod)
		if p == nil {
			panic(wasi.ErrNoProcess)
		}
		p.Enter(ctx)
		answer := eNOTSUP
		if n != nil {
			// A client takes what it is told in its own time.
			resume := p.Pause(ctx)
			answer = f.body(n, mod.ExportedMemory("memory"), stack)
			resume()
		}
		stack[0] = uint64(answer)
	}
}

func progress(n *Notes, m api.Memory, a []uint64) errno {
	text, ok := view(m, a[2], a[3])
	if !ok {
		return n.drop(eFAULT)
	}
	return n.sendProgress(api.DecodeF64(a[0]), api.DecodeF64(a[1]), text)
}

func log(n *Notes, m api.Memory, a []uint64) errno {
	level, ok := view(m, a[0], a[1])
	if !ok {
		return n.drop(eFAULT)
	}
	text, ok := view(m, a[2], a[3])
	if !ok {
		return n.drop(eFAULT)
	}
	if len(level) > MaxBytes {
		return n.drop(eINVAL)
	}
	return n.sendLog(string(level), text)
}

// view returns the bytes of a text in the guest's memory, valid until the guest
// runs again.
func view(m api.Memory, ptr, n uint64) ([]byte, bool) {
	if m == nil {
		return nil, false
	}
	return m.Read(api.DecodeU32(ptr), api.DecodeU32(n))
}
