package runtime

import (
	"context"
	crand "crypto/rand"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// Fate says what becomes of an instance after a call. The zero value discards.
type Fate uint8

// The fates of instances.
const (
	Discard Fate = iota
	Reset
)

// Instances hands out instances of one module, each as it was when it was
// ready for its first call.
type Instances interface {
	// Get returns an instance for one call. ready is the process that start-up
	// code sees: its volumes are sealed. An instance is returned with an error
	// too, and put back by whoever got it.
	Get(ctx context.Context, ready *wasi.Process) (*Instance, error)
	// Put takes an instance back. Reset is for those whose guest ended by itself;
	// any other, and those of a failed Get, are discarded.
	Put(ctx context.Context, i *Instance, f Fate) error
}

// Instance is a module instance with one slot for the call that it serves.
type Instance struct {
	name   string
	method string // by which it was made ready, a label of metrics
	module api.Module
	memory *linearMemory
	slot   atomic.Pointer[served]
}

// newPerCall makes an instance for each call and discards it afterwards.
type newPerCall struct {
	engine  *Engine
	module  wazero.CompiledModule
	memory  uint64 // bytes
	reactor bool
	program bool // it is run by itself, for no request
}

// Get instantiates the module and runs its start-up code.
func (n *newPerCall) Get(ctx context.Context, ready *wasi.Process) (*Instance, error) {
	i := &Instance{
		name:   crand.Text(), // by no other module to be named in an import
		method: "new",
		memory: &linearMemory{limit: n.memory},
	}
	if n.program {
		i.slot.Store(&served{process: ready})
	} else {
		i.slot.Store(&served{process: ready, keys: kv.Sealed(), box: outbox.Sealed()})
	}
	n.engine.slots.Store(i.name, i)
	config := wazero.NewModuleConfig().WithName(i.name).WithStartFunctions()
	module, err := n.engine.wasm.InstantiateModule(experimental.WithMemoryAllocator(ctx, i.memory), n.module, config)
	if err != nil {
		n.engine.slots.Delete(i.name)
		return i, &startError{"start", err}
	}
	i.module = module
	if init := module.ExportedFunction("_initialize"); n.reactor && init != nil {
		if _, err := init.Call(ctx); err != nil {
			return i, &startError{"_initialize", err}
		}
	}
	return i, nil
}

// Put closes the instance: nothing of it is left for another call, so Reset
// is Discard here.
func (n *newPerCall) Put(ctx context.Context, i *Instance, f Fate) error {
	switch f {
	case Discard, Reset:
	}
	n.engine.slots.Delete(i.name)
	if i.module == nil {
		return nil
	}
	return i.module.Close(ctx)
}

// startError is start-up code that did not end well.
type startError struct {
	phase string
	err   error
}

func (e *startError) Error() string { return e.phase + ": " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }
