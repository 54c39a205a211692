package hostengine

import (
	"context"
	goruntime "runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// ModuleName is the import module of the interface.
const ModuleName = wasmbin.EngineModule

// Find returns what a module instance serves now: its process and its meter, nil
// for none.
type Find func(api.Module) (*wasi.Process, *Meter)

// Instantiate registers the interface in a runtime, once. Closing the result
// takes it out again.
func Instantiate(ctx context.Context, r wazero.Runtime, find Find) (api.Closer, error) {
	counter := []api.ValueType{api.ValueTypeI64}
	return r.NewHostModuleBuilder(ModuleName).NewFunctionBuilder().
		WithGoModuleFunction(checkpoint(find), counter, counter).
		WithName(wasmbin.CheckpointName).
		Export(wasmbin.CheckpointName).
		Instantiate(ctx)
}

// checkpoint gets the counter of a guest and returns the next one. It stops a
// guest whose context has ended, or whose fuel has.
func checkpoint(find Find) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		p, meter := find(m)
		if p == nil || meter == nil {
			panic(wasi.ErrNoProcess)
		}
		// Machine code does not let the scheduler in: this is where it comes in.
		goruntime.Gosched()
		p.Yield(ctx)
		next, err := meter.Next(int64(stack[0]))
		if err != nil {
			p.Raise(err)
		}
		stack[0] = uint64(next)
	}
}
