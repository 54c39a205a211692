package hostkv

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// ModuleName is the import module of the interface.
const ModuleName = "sandboxd_kv"

// errno is the answer to a guest, with the numbers of WASI preview 1.
type errno uint32

// The answers that are no error of a file operation.
const (
	success   errno = 0
	eFAULT    errno = 21 // an address is not in the memory
	eINVAL    errno = 28 // the value is no number
	eNOENT    errno = 44 // no such key
	eNOTSUP   errno = 58 // there are no keys: the guest serves no call
	eOVERFLOW errno = 61 // the sum does not fit
	eRANGE    errno = 68 // the buffer is too small
)

// Find returns what a module instance serves now: its process, nil for none, and
// the keys of its call, nil where it has none.
type Find func(api.Module) (*wasi.Process, *kv.Keys)

// function is one function of the interface. All return an errno.
type function struct {
	name   string
	params []api.ValueType
	body   func(ctx context.Context, k *kv.Keys, m memory, stack []uint64) (errno, error)
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

func functions() []function {
	return []function{
		{"get", []api.ValueType{i32, i32, i32, i32, i32}, get},
		{"put", []api.ValueType{i32, i32, i32, i32}, put},
		{"delete", []api.ValueType{i32, i32}, remove},
		{"append", []api.ValueType{i32, i32, i32, i32}, appendTo},
		{"increment", []api.ValueType{i32, i32, i64, i32}, increment},
		{"scan", []api.ValueType{i32, i32, i32, i32, i32, i32, i32, i32}, scan},
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
		p, k := find(mod)
		if p == nil {
			panic(wasi.ErrNoProcess)
		}
		p.Enter(ctx)
		answer := eNOTSUP
		if k != nil {
			var err error
			if answer, err = f.body(ctx, k, memory{mod.ExportedMemory("memory")}, stack); err != nil {
				answer = told(ctx, p, err)
			}
		}
		stack[0] = uint64(answer)
	}
}

// told turns an error into the number that the guest gets. It does not return
// for an error that ends the call.
func told(ctx context.Context, p *wasi.Process, err error) errno {
	switch {
	case errors.Is(err, kv.ErrNotNumber):
		return eINVAL
	case errors.Is(err, kv.ErrOverflow):
		return eOVERFLOW
	}
	if e, ok := errors.AsType[capabilities.Errno](err); ok {
		return errno(wasi.Number(e))
	}
	p.Enter(ctx) // the end of the call may be why the store did not answer
	if !ends(err) {
		err = &wasi.HostError{Err: err}
	}
	p.Raise(err)
	return eNOTSUP
}

// ends reports whether an error is the guest's own doing.
func ends(err error) bool {
	if _, ok := errors.AsType[*capabilities.Violation](err); ok {
		return true
	}
	if _, ok := errors.AsType[*kv.LimitError](err); ok {
		return true
	}
	_, ok := errors.AsType[*kv.SealedError](err)
	return ok
}
