package main

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/tool"
)

// live keeps one instance of a reactor for each caller, without a sandbox
// around it: nothing is put back between calls, nothing interrupts a guest, and
// nothing is judged.
type live struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	folder   string
	mu       sync.Mutex
	byCaller map[int]*liveInstance
}

type liveInstance struct {
	module      api.Module
	alloc, call api.Function
	stack       []uint64
}

// openLivePackage compiles a reactor by itself, rewritten as the engine does it
// where it is metered. The lab closes it.
func (l *lab) openLivePackage(ctx context.Context, dir, folder string, metered bool) (*live, error) {
	dir, err := l.ship(ctx, dir)
	if err != nil {
		return nil, err
	}
	p, err := tool.Load(dir, nil)
	if err != nil {
		return nil, err
	}
	module := p.Module
	if metered {
		if module, err = rewritten(module); err != nil {
			return nil, err
		}
	}
	return l.openLiveModule(ctx, module, folder, false)
}

// rewritten returns a module that can be interrupted, as the engine runs it.
func rewritten(module []byte) ([]byte, error) {
	r, err := wasmbin.Rewrite(module, wasmbin.Options{MaxMemory: 1 << 16, MaxTables: 64, MaxTable: 1 << 20})
	return r.Module, err
}

// quantum is how much code runs between two checkpoints: a millisecond, about.
const quantum = 1_000_000

// checkpoints gives rewritten modules their checkpoint, which lets others run, as
// the engine's does.
func checkpoints(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(wasmbin.EngineModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			goruntime.Gosched()
			stack[0] = quantum
		}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(wasmbin.CheckpointName).Instantiate(ctx)
	return err
}

func (l *lab) openLiveModule(ctx context.Context, module []byte, folder string, interruptible bool) (*live, error) {
	config, err := l.config()
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCloseOnContextDone(interruptible))
	l.onClose(func() error { return r.Close(context.WithoutCancel(ctx)) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(absent(ctx, r, compiled), checkpoints(ctx, r)); err != nil {
		return nil, err
	}
	return &live{runtime: r, compiled: compiled, folder: folder, byCaller: map[int]*liveInstance{}}, nil
}

// absent gives a module the host functions of the project that it imports; each
// answers that there is no such thing.
func absent(ctx context.Context, r wazero.Runtime, m wazero.CompiledModule) error {
	const notSupported = 58 // WASI preview 1
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == wasi_snapshot_preview1.ModuleName || module == wasmbin.EngineModule {
			continue
		}
		if builders[module] == nil {
			builders[module] = r.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().
			WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = notSupported }), f.ParamTypes(), f.ResultTypes()).
			Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// of returns the caller's instance.
func (v *live) of(ctx context.Context, caller int) (*liveInstance, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := v.byCaller[caller]; i != nil {
		return i, nil
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysWalltime().WithSysNanotime()
	if v.folder != "" {
		config = config.WithFSConfig(wazero.NewFSConfig().WithDirMount(v.folder, "/data"))
	}
	m, err := v.runtime.InstantiateModule(ctx, v.compiled, config)
	if err != nil {
		return nil, err
	}
	i := &liveInstance{m, m.ExportedFunction("sandboxd_alloc"), m.ExportedFunction("sandboxd_call"), make([]uint64, 2)}
	v.byCaller[caller] = i
	return i, nil
}

// answer makes one call.
func (i *liveInstance) answer(ctx context.Context, request []byte) ([]byte, error) {
	i.stack[0] = uint64(len(request))
	if err := i.alloc.CallWithStack(ctx, i.stack); err != nil {
		return nil, err
	}
	at := uint32(i.stack[0])
	if !i.module.Memory().Write(at, request) {
		return nil, fmt.Errorf("no room at %d", at)
	}
	i.stack[0], i.stack[1] = uint64(at), uint64(len(request))
	if err := i.call.CallWithStack(ctx, i.stack); err != nil {
		return nil, err
	}
	b, ok := i.module.Memory().Read(uint32(i.stack[0]>>32), uint32(i.stack[0]))
	if !ok {
		return nil, fmt.Errorf("answer at %#x is not in memory", i.stack[0])
	}
	return append([]byte(nil), b...), nil
}

// subject returns the subject of one tool.
func (v *live) subject(name string, w work) measure.Subject {
	request := w.request()
	return measure.Subject{Name: name, CPU: measure.Self, Call: func(ctx context.Context, caller, n int) error {
		i, err := v.of(ctx, caller)
		if err != nil {
			return err
		}
		answer, err := i.answer(ctx, request)
		if err != nil {
			return err
		}
		return w.check(answer, n)
	}}
}
