package runtime

import (
	"context"
	crand "crypto/rand"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/image"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// factory makes instances of one module.
type factory struct {
	engine  *Engine
	pkg     string
	module  wazero.CompiledModule
	shape   shape
	limits  tool.Limits
	reactor bool
	leaves  bool   // the program can be left at its first read of standard input
	reseeds bool   // the module gives its random generators a new seed when it is asked to
	warmUp  []byte // the request of a call that is made before an instance is ready; nil: none is
	sealed  func(wasi.Options, *capabilities.Ledger) *wasi.Process
}

// preparation is start-up code that runs, or has run, on an instance that is not
// ready yet.
type preparation struct {
	clock   *clock
	random  drawn
	process *wasi.Process
	seat    *seat
	printed bool         // to standard output
	input   wasi.AtInput // what happens at the first read of standard input; nil: it is at its end
}

// drawn reads random numbers and remembers that it did.
type drawn struct {
	io.Reader
	any bool
}

func (d *drawn) Read(b []byte) (int, error) {
	d.any = d.any || len(b) > 0
	return d.Reader.Read(b)
}

func (f *factory) preparation(stderr io.Writer, l *capabilities.Ledger, s *startUp) *preparation {
	p := &preparation{clock: newStartUpClock(f.limits.Timeout, s.ahead), random: drawn{Reader: newRandom()}, seat: s.seat}
	p.process = f.sealed(wasi.Options{
		Stdout: printing{p}, Stderr: stderr, Random: &p.random, Clock: p.clock, Processor: s.seat, AtInput: p.atInput,
	}, l)
	return p
}

// ready makes an instance that is ready for its first call. Errors are of type
// [*startError].
func (f *factory) ready(ctx context.Context, s *startUp) (*Instance, error) {
	i, err := f.start(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := f.finish(ctx, i); err != nil {
		return nil, err
	}
	i.settle()
	i.fold(f)
	return i, nil
}

// start makes an instance and runs its start-up code.
func (f *factory) start(ctx context.Context, s *startUp) (*Instance, error) {
	i := &Instance{name: crand.Text(), preparation: f.preparation(s.stderr, s.ledger, s)} // by no other module to be named in an import
	if err := f.instantiate(ctx, i, nil); err != nil {
		return nil, f.failed(ctx, i, "start", err)
	}
	if init := i.module.ExportedFunction("_initialize"); f.reactor && init != nil {
		if err := init.CallWithStack(ctx, nil); err != nil {
			return nil, f.failed(ctx, i, "_initialize", err)
		}
	}
	return i, nil
}

// finish makes an instance whose start-up code has run ready for its first call.
func (f *factory) finish(ctx context.Context, i *Instance) error {
	if err := f.warmed(ctx, i); err != nil {
		return err
	}
	if f.reseeds {
		if err := i.reseed(ctx, newRandom(), i.preparation.seat); err != nil {
			return f.failed(ctx, i, reseedExport, err)
		}
	}
	i.began = i.preparation.clock.Monotonic()
	if f.leaves {
		if err := f.reach(ctx, i); err != nil {
			return f.failed(ctx, i, "start", err)
		}
	}
	return nil
}

// warmed makes the call that is to be made ahead.
func (f *factory) warmed(ctx context.Context, i *Instance) error {
	i.bind(f)
	if f.warmUp == nil {
		return nil
	}
	if err := f.warm(ctx, i); err != nil {
		return f.failed(ctx, i, "warmup", err)
	}
	return nil
}

// first is finish for the first instance there is: it finds out whether the module
// takes a seed, and why no image can be made of it, where none can.
func (f *factory) first(ctx context.Context, i *Instance) (why Reason, err error) {
	f.reseeds = f.reactor && f.shape.reseeds
	if err := f.warmed(ctx, i); err != nil {
		return "", err
	}
	shared := i.preparation.random.any // by all instances of an image
	if f.reseeds {
		if err := i.reseed(ctx, newRandom(), i.preparation.seat); err != nil {
			f.reseeds = false
			return ReasonRandom, f.limited(ctx, i)
		}
		shared = false
	}
	i.began = i.preparation.clock.Monotonic()
	if shared {
		return ReasonRandom, nil
	}
	return "", nil
}

// limited returns an error, and discards the instance, where it took no seed because it
// ran into a limit: a larger one is what it takes, and no other way to make instances.
func (f *factory) limited(ctx context.Context, i *Instance) error {
	stop := i.seeding.process.Stop()
	if asLimit(stop) == nil && ctx.Err() == nil {
		return nil
	}
	if stop == nil {
		stop = context.Cause(ctx)
	}
	f.engine.discard(ctx, i)
	return &startError{phase: reseedExport, err: stop, stopped: true}
}

// restore makes an instance of a state. Its start function runs, and is forgotten.
func (f *factory) restore(ctx context.Context, st *state, s *startUp) (*Instance, error) {
	i := &Instance{name: crand.Text(), preparation: f.preparation(io.Discard, nobody(), s), began: st.began}
	if err := f.instantiate(ctx, i, st.image); err != nil {
		return nil, f.failed(ctx, i, "start", err)
	}
	i.settle()
	i.bind(f)
	if err := i.adopt(st, f.shape.globals); err != nil {
		f.engine.discard(ctx, i)
		return nil, &startError{phase: "start", err: &wasi.HostError{Err: err}, stopped: true}
	}
	return i, nil
}

// instantiate makes the module's instance over a memory of the image, or a new one.
func (f *factory) instantiate(ctx context.Context, i *Instance, im *image.Image) (err error) {
	if i.preparation != nil {
		i.slot.Store(&served{
			process: i.preparation.process, meter: hostengine.NewMeter(f.limits.Fuel), keys: kv.Sealed(), box: outbox.Sealed(),
		})
	}
	o := image.Options{Limit: uint64(f.limits.Memory), Declared: f.shape.most, Min: f.shape.least, Image: im}
	if im != nil {
		o.Method = f.engine.method
	}
	if f.leaves { // what the host takes for itself is not the guest's
		o.Limit += areaPages * pageBytes
		if o.Declared > 0 {
			o.Declared += areaPages * pageBytes
		}
	}
	i.memory, err = image.NewMemory(o)
	if err != nil {
		return &wasi.HostError{Err: err}
	}
	f.engine.slots.Store(i.name, i)
	i.kept = max(f.shape.kept, instanceBytes) - instanceBytes
	config := wazero.NewModuleConfig().WithName(i.name).WithStartFunctions()
	i.module, err = f.engine.wasm.InstantiateModule(experimental.WithMemoryAllocator(ctx, i.memory), f.module, config)
	if err == nil {
		i.counter = i.module.ExportedGlobal(wasmbin.CounterExport).(api.MutableGlobal)
	}
	return err
}

// failed discards an instance that did not come to be ready, and says why.
func (f *factory) failed(ctx context.Context, i *Instance, phase string, err error) error {
	e := &startError{phase: phase, err: err, refused: i.memory != nil && i.memory.Refused()}
	if stop := i.preparation.process.Stop(); stop != nil {
		e.err, e.stopped = stop, true
	}
	f.engine.discard(ctx, i)
	return e
}

// settle ends what start-up code had.
func (i *Instance) settle() {
	i.slot.Store(nil)
	if i.preparation != nil {
		i.preparation.process.Close()
		i.preparation = nil
	}
}

// discard gives back what an instance holds. No call may be in flight.
func (e *Engine) discard(ctx context.Context, i *Instance) {
	i.settle()
	e.slots.Delete(i.name)
	if i.module != nil {
		_ = i.module.Close(ctx) // it says no more than that it was closed before
	}
	if i.memory != nil {
		_ = i.memory.Release() // what the system does not take back it cannot be made to
	}
}
