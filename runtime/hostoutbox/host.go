package hostoutbox

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// ModuleName is the import module of the interface.
const ModuleName = "sandboxd_outbox"

// errno is the answer to a guest, with the numbers of WASI preview 1.
type errno uint32

// The answers that are no error of a file operation.
const (
	success errno = 0
	eFAULT  errno = 21 // a field is not in the memory
	eINVAL  errno = 28 // a field is not valid
	eNOBUFS errno = 42 // more than a call may send
	eNOTSUP errno = 58 // there is no outbox: the guest serves no call
)

// Find returns what a module instance serves now: its process, nil for none, and
// the outbox of its call, nil where it has none.
type Find func(api.Module) (*wasi.Process, *outbox.Box)

const sendName = "send"

// sendParams are the fields of a message, an address and a length each.
func sendParams() []api.ValueType {
	params := make([]api.ValueType, 12)
	for i := range params {
		params[i] = api.ValueTypeI32
	}
	return params
}

// Signature returns the type of a function of the interface, and whether there
// is one of that name.
func Signature(name string) (params, results []api.ValueType, ok bool) {
	if name != sendName {
		return nil, nil, false
	}
	return sendParams(), []api.ValueType{api.ValueTypeI32}, true
}

// Instantiate registers the interface in a runtime, once. Closing the result
// takes it out again.
func Instantiate(ctx context.Context, r wazero.Runtime, find Find) (api.Closer, error) {
	params, results, _ := Signature(sendName)
	return r.NewHostModuleBuilder(ModuleName).NewFunctionBuilder().
		WithGoModuleFunction(bind(find), params, results).
		WithName(sendName).
		Export(sendName).
		Instantiate(ctx)
}

// bind makes the host function. A guest that was stopped, or whose context has
// ended, is stopped here too.
func bind(find Find) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		p, b := find(mod)
		if p == nil {
			panic(wasi.ErrNoProcess)
		}
		p.Enter(ctx)
		answer := eNOTSUP
		if b != nil {
			answer = send(ctx, p, b, mod.ExportedMemory("memory"), stack)
		}
		stack[0] = uint64(answer)
	}
}

// longest is more than any text of a message may have, in bytes: what is longer
// is cut to it, and so is not valid.
const longest = 8 << 10

func send(ctx context.Context, p *wasi.Process, b *outbox.Box, m api.Memory, a []uint64) errno {
	var texts [5]string
	for i := range texts {
		v, ok := view(m, a[2*i], a[2*i+1])
		if !ok {
			return eFAULT
		}
		texts[i] = string(v[:min(len(v), longest)])
	}
	body, ok := view(m, a[10], a[11])
	if !ok {
		return eFAULT
	}
	err := b.Send(ctx, outbox.Message{
		Host: texts[0], Method: texts[1], Path: texts[2], ContentType: texts[3], Key: texts[4], Body: body,
	})
	if err == nil {
		return success
	}
	return told(ctx, p, err)
}

// told turns an error into the number that the guest gets. It does not return
// for an error that ends the call.
func told(ctx context.Context, p *wasi.Process, err error) errno {
	switch {
	case errors.Is(err, outbox.ErrMessage):
		return eINVAL
	case errors.Is(err, outbox.ErrTooMany):
		return eNOBUFS
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
	if _, ok := errors.AsType[*outbox.LimitError](err); ok {
		return true
	}
	_, ok := errors.AsType[*outbox.SealedError](err)
	return ok
}

// view returns n bytes of the guest's memory, valid until the guest runs again.
func view(m api.Memory, ptr, n uint64) ([]byte, bool) {
	if m == nil {
		return nil, false
	}
	return m.Read(api.DecodeU32(ptr), api.DecodeU32(n))
}
