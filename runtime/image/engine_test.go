package image

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	wt "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// Of instructions that wasmtest does not name.
var (
	i32Store    = []byte{0x36, 2, 0}
	memorySize  = []byte{0x3f, 0}
	unreachable = []byte{0x00}
)

func globalGet(i byte) []byte { return []byte{0x23, i} }
func globalSet(i byte) []byte { return []byte{0x24, i} }

// module has functions that do one thing each. Its start function works only on
// an empty memory.
func module() []byte {
	one := []byte{wt.I32}
	bump := func(i byte, one []byte, add byte) []byte {
		return wt.Seq(globalGet(i), one, []byte{add}, globalSet(i))
	}
	counts := wt.Seq(
		bump(0, wt.I32Const(1), 0x6a), bump(1, wt.I64Const(1), 0x7c),
		bump(2, []byte{0x43, 0, 0, 0x80, 0x3f}, 0x92), bump(3, []byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 0xa0))
	return wt.Module{
		Memory: [2]uint32{2, 5}, // its own maximum is the host's to keep once it is rewritten
		Start:  2,
		Data:   map[uint32][]byte{1024: []byte("data of the module")},
		Globals: []wt.Global{
			{Type: wt.I32, Mutable: true, Init: wt.I32Const(-5)},
			{Type: wt.I64, Mutable: true, Init: wt.I64Const(math.MinInt64)},
			{Type: wt.F32, Mutable: true, Init: []byte{0x43, 0, 0, 0x80, 0x3f}},
			{Type: wt.F64, Mutable: true, Init: []byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		},
		Funcs: []wt.Func{
			{Import: "host", Name: "wait"},
			{Name: "start", Body: wt.Seq(wt.I32Const(64), wt.I32Load, wt.If, unreachable, wt.End, wt.I32Const(64), wt.I32Const(1), i32Store)},
			{Name: "init", Body: wt.Seq(wt.I32Const(1), wt.MemoryGrow, wt.Drop, wt.I32Const(3<<16-4), wt.I32Const(77), i32Store, counts)},
			{Name: "write", Params: []byte{wt.I32, wt.I32}, Body: wt.Seq(wt.LocalGet(0), wt.LocalGet(1), i32Store)},
			{Name: "read", Params: one, Results: one, Body: wt.Seq(wt.LocalGet(0), wt.I32Load)},
			{Name: "grow", Params: one, Results: one, Body: wt.Seq(wt.LocalGet(0), wt.MemoryGrow)},
			{Name: "size", Results: one, Body: memorySize},
			{Name: "count", Results: one, Body: wt.Seq(counts, globalGet(0))},
			{Name: "trap", Body: wt.Seq(counts, wt.I32Const(8), wt.I32Const(9), i32Store, unreachable)},
			{Name: "deep", Results: one, Body: wt.Seq(wt.Call(9), wt.I32Const(1), wt.I32Add)},
			{Name: "late", Body: wt.Seq(wt.Call(0), wt.I32Const(2048), wt.I32Const(5), i32Store, wt.I32Const(2052), wt.I32Const(2048), wt.I32Load, i32Store)},
		},
	}.Encode()
}

// engine is a compiled module and the image of an instance that ran init.
type engine struct {
	wasm    wazero.Runtime
	module  wazero.CompiledModule
	system  system
	image   *Image
	want    []byte
	globals map[string]uint64
	wait    func()
}

const limit = 8 * wasmPage

func newEngine(t testing.TB, s system) *engine {
	t.Helper()
	return newEngineOf(t, s, wazero.NewRuntimeConfig())
}

func newEngineOf(t testing.TB, s system, c wazero.RuntimeConfig) *engine {
	t.Helper()
	ctx := t.Context()
	e := &engine{wasm: wazero.NewRuntimeWithConfig(ctx, c), system: s, globals: map[string]uint64{}, wait: func() {}}
	t.Cleanup(func() { _ = e.wasm.Close(context.Background()) })
	_, err := e.wasm.NewHostModuleBuilder("host").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) { e.wait() }), nil, nil).
		Export("wait").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.wasm.NewHostModuleBuilder(wasmbin.EngineModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 1 << 40 }),
			[]api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(wasmbin.CheckpointName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rewritten, err := wasmbin.Rewrite(module(), wasmbin.Options{MaxMemory: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(rewritten.Globals) != 4 || rewritten.MaxMemory != 5*wasmPage {
		t.Fatalf("%+v", rewritten.Imaging)
	}
	if e.module, err = e.wasm.CompileModule(ctx, rewritten.Module); err != nil {
		t.Fatal(err)
	}
	template := e.instantiate(t, Options{Limit: limit, Min: 2 * wasmPage})
	template.call(t, "init")
	e.want = append([]byte(nil), template.bytes(t)...)
	for _, g := range rewritten.Globals {
		e.globals[g.Name()] = template.module.ExportedGlobal(g.Name()).Get()
	}
	if e.image, err = s.image(e.want); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.image.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// instance is one instance over a memory of this package.
type instance struct {
	engine *engine
	module api.Module
	memory *Memory
	calls  map[string]api.Function
}

func (e *engine) instantiate(t testing.TB, o Options) *instance {
	t.Helper()
	m, err := NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{engine: e, memory: m, calls: map[string]api.Function{}}
	ctx := experimental.WithMemoryAllocator(t.Context(), m)
	i.module, err = e.wasm.InstantiateModule(ctx, e.module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(errors.Join(err, m.Release()))
	}
	t.Cleanup(func() {
		if err := errors.Join(i.module.Close(context.Background()), m.Release()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// adopted returns an instance that is the image.
func (e *engine) adopted(t testing.TB, method Method, most uint64) *instance {
	t.Helper()
	i := e.instantiate(t, Options{Limit: most, Image: e.image, Method: method})
	if err := i.memory.Adopt(i.module.Memory()); err != nil {
		t.Fatal(err)
	}
	i.setGlobals()
	i.isImage(t)
	return i
}

func (i *instance) setGlobals() {
	for name, v := range i.engine.globals {
		i.module.ExportedGlobal(name).(api.MutableGlobal).Set(v)
	}
}

func (i *instance) reset(t testing.TB) {
	t.Helper()
	if _, err := i.memory.Reset(); err != nil {
		t.Fatal(err)
	}
	i.setGlobals()
	i.isImage(t)
}

func (i *instance) bytes(t testing.TB) []byte {
	t.Helper()
	b, ok := i.module.Memory().Read(0, i.module.Memory().Size())
	if !ok {
		t.Fatal("the memory cannot be read")
	}
	return b
}

// isImage compares all bytes of the memory, and what the guest sees of it.
func (i *instance) isImage(t testing.TB) {
	t.Helper()
	if string(i.bytes(t)) != string(i.engine.want) {
		t.Fatal("the memory is not the image")
	}
	if pages := i.call(t, "size"); pages != uint64(len(i.engine.want)/wasmPage) {
		t.Fatalf("the guest has %d pages", pages)
	}
	for name, v := range i.engine.globals {
		if got := i.module.ExportedGlobal(name).Get(); got != v {
			t.Fatalf("global %s is %#x, not %#x", name, got, v)
		}
	}
}

func (i *instance) try(t testing.TB, name string, args ...uint64) (uint64, error) {
	t.Helper()
	f := i.calls[name]
	if f == nil {
		f = i.module.ExportedFunction(name)
		i.calls[name] = f
	}
	got, err := f.Call(t.Context(), args...)
	if err != nil || len(got) == 0 {
		return 0, err
	}
	return got[0], nil
}

func (i *instance) call(t testing.TB, name string, args ...uint64) uint64 {
	t.Helper()
	got, err := i.try(t, name, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

// eachMethod runs a test for mapped memories and for those of a system without.
func eachMethod(t *testing.T, test func(t *testing.T, e *engine, m Method)) {
	for name, s := range map[string]system{"here": probed(), "heap": plain()} {
		for _, m := range s.methods {
			t.Run(name+"/"+string(m), func(t *testing.T) { test(t, newEngine(t, s), m) })
		}
	}
}
