package wasmbin

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"
)

const quantum = 1 << 20

// meter is the host's side of a rewritten module.
type meter struct {
	quantum     int64
	granted     int64
	spent       int64
	checkpoints int
}

func newMeter(quantum int64) *meter { return &meter{quantum: quantum} }

// register registers a checkpoint that stops a guest when its context has ended.
func (m *meter) register(t rapid.TB, r wazero.Runtime) {
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := r.NewHostModuleBuilder(EngineModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(m.checkpoint), i64, i64).
		Export(CheckpointName).Instantiate(context.Background())
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func (m *meter) checkpoint(ctx context.Context, _ api.Module, stack []uint64) {
	if ctx.Err() != nil {
		panic(context.Cause(ctx))
	}
	m.checkpoints++
	m.spent += m.granted - int64(stack[0])
	m.granted = m.quantum
	stack[0] = uint64(m.granted)
}

// total returns what was spent in all, 0 for a module that is not rewritten.
func (m *meter) total(mod api.Module) int64 {
	if mod.ExportedGlobal(CounterExport) == nil {
		return 0
	}
	return m.spent + m.granted - int64(mod.ExportedGlobal(CounterExport).Get())
}
