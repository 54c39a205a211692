package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/hostkv"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/runtime/hostoutbox"
	"github.com/sandboxd/sandboxd/runtime/image"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// Options of an [Engine]. The zero value keeps nothing on disk and gives no
// managed volume.
type Options struct {
	Cache    string   // folder of compiled modules; empty: none on disk
	Reserved []string // further folders of the host that no tool may be given; default: none
	State    string   // the host's own folder, which no tool is given; default: none
	// Store keeps what calls leave: managed volumes, keys, messages, and what undoing
	// needs. The caller closes it after the engine. nil: a package that requests one of
	// these is refused, and nothing can be undone.
	Store store.Store
	// SharedStore says that engines on other machines use the store, too: a host folder
	// is refused then, since the others do not see it. Default: false.
	SharedStore bool
	// Disk is told of each step on a host folder before it is done, and fails it by
	// an error: what full disks and crashes are tried with. nil: nobody is told.
	Disk      func(op, name string) error
	Retention Retention
	Limits    CallLimits
	// Rewrite makes, of a module, one that can be left at its first read of standard
	// input (asyncify). It runs on what authors wrote. nil: none is made.
	Rewrite func(ctx context.Context, module []byte) ([]byte, error)
	// Warm is what instances that wait for a call may take in all, in bytes, besides the
	// images that they share. Default: 1 GiB, or an eighth of the machine's memory where
	// that is less.
	Warm     uint64
	Strategy Strategy // default: [StrategyImage]
	Observer Observer
}

// Engine runs tools. It is safe for concurrent use.
type Engine struct {
	store    store.Store
	intents  *tx.Intents                 // of the store; nil where folders are not changed with one
	shared   bool                        // machines share the store
	disk     func(op, name string) error // see Options
	retain   Retention
	once     flights  // calls under idempotency keys
	own      []string // the host's folders, which no tool may be given
	observer Observer
	cache    wazero.CompilationCache
	wasm     wazero.Runtime
	slots    sync.Map // instance by module name
	folders  folders
	gate     *gate
	cpus     *processors
	running  *running
	warm     *warm
	strategy Strategy
	loads    loads
	method   image.Method                                  // how memories are put back; empty: the fastest that works
	rewrite  func(context.Context, []byte) ([]byte, error) // see Options
	live     live
	patience time.Duration // how long a package that is closed waits for calls that are stopped

	release sync.Once
	closed  error // what releasing came to
}

// New returns an engine, which the caller closes.
func New(ctx context.Context, o Options) (*Engine, error) {
	limits, err := o.Limits.or(engineLimits)
	if err != nil {
		return nil, err
	}
	strategy := cmp.Or(o.Strategy, StrategyImage)
	if !strategy.valid() {
		return nil, fmt.Errorf("strategy %q: want one of %q", o.Strategy, strategies)
	}
	cache, err := openCache(o.Cache)
	if err != nil {
		return nil, err
	}
	// What stops a guest and lets the Go scheduler in is the checkpoint that every
	// module is given (hostengine): machine code itself is not preemptible.
	config := wazero.NewRuntimeConfig().
		WithCompilationCache(cache).
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false) // a parser of DWARF on an author's bytes, for nothing but traces
	e := &Engine{
		store:    o.Store,
		shared:   o.SharedStore,
		disk:     o.Disk,
		retain:   o.Retention.orDefault(),
		own:      slices.DeleteFunc(append([]string{o.State, o.Cache}, o.Reserved...), func(dir string) bool { return dir == "" }),
		observer: o.Observer,
		cache:    cache,
		wasm:     wazero.NewRuntimeWithConfig(ctx, config),
		gate:     &gate{scope: "host", limits: limits},
		cpus:     newProcessors(goruntime.GOMAXPROCS(0)),
		running:  newRunning(errEngineClosed),
		patience: 10 * time.Second,
		strategy: strategy,
		rewrite:  o.Rewrite,
	}
	e.warm = newWarm(cmp.Or(o.Warm, defaultWarm()), func(i *Instance) { e.discard(context.Background(), i) }, e.idled)
	if e.store != nil && !e.shared {
		if e.intents, err = tx.NewIntents(ctx, e.store); err != nil {
			return nil, errors.Join(fmt.Errorf("store: %w", err), e.Close(ctx))
		}
	}
	if err := e.hostFunctions(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("host functions: %w", err), e.Close(ctx))
	}
	return e, nil
}

// hostFunctions registers all that a guest can import.
func (e *Engine) hostFunctions(ctx context.Context) error {
	_, err := wasi.Instantiate(ctx, e.wasm, e.process)
	if err == nil {
		_, err = hostengine.Instantiate(ctx, e.wasm, func(m api.Module) (*wasi.Process, *hostengine.Meter) {
			s := e.served(m)
			return s.process, s.meter
		})
	}
	if err == nil {
		_, err = hostmcp.Instantiate(ctx, e.wasm, func(m api.Module) (*wasi.Process, *hostmcp.Notes) {
			s := e.served(m)
			return s.process, s.notes
		})
	}
	if err == nil {
		_, err = hostkv.Instantiate(ctx, e.wasm, func(m api.Module) (*wasi.Process, *kv.Keys) {
			s := e.served(m)
			return s.process, s.keys
		})
	}
	if err == nil {
		_, err = hostoutbox.Instantiate(ctx, e.wasm, func(m api.Module) (*wasi.Process, *outbox.Box) {
			s := e.served(m)
			return s.process, s.box
		})
	}
	return err
}

func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	// Compiled code is executed: nobody else may write it.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	return cache, nil
}

// Drain lets no further call or load begin and waits for those that run. It
// returns the cause of ctx when that ends first; they run on then.
func (e *Engine) Drain(ctx context.Context) error { return e.running.drain(ctx) }

// Stop lets no further call begin, stops those that run, and returns when they
// have ended; one that is being committed is not cut off. It returns a
// [*RunningError] when ctx ends first.
func (e *Engine) Stop(ctx context.Context) error { return e.running.stop(ctx) }

// Close stops the calls that still run, waits for them to end (one that is
// being committed is not cut off), and releases what the engine holds. Later
// calls are refused. When ctx ends first it gives the calls up: each is reported
// to [Observer.CallEnd] with the outcome [HostError] and not again when it ends,
// the engine is released once the last one has, and a [*RunningError] is
// returned. Packages may be closed before or afterwards.
func (e *Engine) Close(ctx context.Context) error {
	free := func() {
		e.release.Do(func() {
			ctx := context.WithoutCancel(ctx)
			e.closed = errors.Join(e.warm.close(), e.wasm.Close(ctx), e.cache.Close(ctx), e.folders.close())
		})
	}
	if err := e.running.stop(ctx); err != nil {
		e.live.giveUp(time.Second)
		go func() {
			<-e.running.drained
			free()
		}()
		return err
	}
	free()
	return e.closed
}

// served is what a module instance serves now. The zero value is nothing.
type served struct {
	process *wasi.Process
	meter   *hostengine.Meter // set with process
	notes   *hostmcp.Notes    // nil outside of a call
	keys    *kv.Keys
	box     *outbox.Box
}

// served finds what a module instance serves now.
func (e *Engine) served(m api.Module) served {
	i, ok := e.slots.Load(m.Name())
	if !ok {
		return served{}
	}
	s := i.(*Instance).slot.Load()
	if s == nil {
		return served{}
	}
	return *s
}

// process finds the process that a module instance serves now.
func (e *Engine) process(m api.Module) *wasi.Process {
	return e.served(m).process
}

func (e *Engine) compile(ctx context.Context, name string, module []byte) (wazero.CompiledModule, error) {
	defer e.compiling(name, len(module))()
	ctx = experimental.WithCompilationWorkers(ctx, goruntime.GOMAXPROCS(0))
	return e.wasm.CompileModule(ctx, module)
}

// compiling tells that a module is being compiled, until done is called.
func (e *Engine) compiling(name string, bytes int) (done func()) {
	if e.observer.Compile != nil {
		if done := e.observer.Compile(name, bytes); done != nil {
			return done
		}
	}
	return func() {}
}
