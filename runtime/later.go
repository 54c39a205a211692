package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// Recorded is what an earlier load of the same module and manifest came to.
type Recorded struct {
	Tools []tool.Definition // in force then; at least one
	// Check judges the tools that the package has now, once that is known, and before
	// any call runs. An error is what the load fails of. nil: every load fails.
	Check func(now []tool.Definition) error
	// Done is told once how the load ended, by a [*LoadError] where it failed, before
	// the package can have been closed. It is not called where the package is closed
	// before its load has ended. nil: nobody is told.
	Done func(err error)
}

var (
	errNothingRecorded = errors.New("no tools are recorded")
	errNoCheck         = errors.New("nobody says whether its tools are those that are recorded")
)

// LoadLater returns a package whose tools are known from an earlier load, without
// compiling the module or running any of it: that is done by [Package.Warm] or by
// the first call, which waits for it. What the manifest says, what the package is
// given, and what the module imports and exports is checked at once; errors are
// those of [Engine.Load]. Where the rest fails, each call is refused with the
// [*LoadError].
func (e *Engine) LoadLater(ctx context.Context, src *tool.Package, b Binding, r Recorded) (*Package, error) {
	return e.load(ctx, src, b, &r)
}

// later is the rest of the load of a package that is listed already.
type later struct {
	check  func([]tool.Definition) error
	done   func(error)
	place  place         // guarded by the loads
	ended  chan struct{} // closed when the load has ended
	failed error         // why it failed; set before that
}

// complete compiles the package, runs its start-up code and returns its tools: now,
// or later where they are on record.
func (p *Package) complete(ctx context.Context, phase *string, r *Recorded) ([]tool.Definition, error) {
	if r == nil {
		*phase = "module"
		if err := p.prepare(ctx, phase); err != nil {
			return nil, err
		}
		return p.start(ctx, phase)
	}
	*phase = "link"
	if err := CheckLink(p.source.Module, p.source.Manifest.ABI); err != nil {
		return nil, err
	}
	*phase = "describe"
	if len(r.Tools) == 0 {
		return nil, errNothingRecorded
	}
	p.later = &later{check: r.Check, done: r.Done, ended: make(chan struct{})}
	return r.Tools, nil
}

// loadFault, deferred, turns the error of a load, or its panic, into a [*LoadError].
func (p *Package) loadFault(phase *string, err *error) {
	// No package may take the host down, whatever it makes the engine do.
	if fault := recover(); fault != nil {
		*err = &HostFault{fmt.Errorf("%w: %v\n%s", errPanic, fault, debug.Stack())}
	}
	if *err != nil {
		*err = &LoadError{Package: p.name, Phase: *phase, Err: *err, Log: p.log}
	}
}

func isLoadError(err error) bool {
	_, ok := errors.AsType[*LoadError](err)
	return ok
}

// Warm has the load of a package finished in the background, and returns at once.
// Packages that calls wait for come first. It does nothing for one that was loaded
// in full.
func (p *Package) Warm() {
	if p.later != nil {
		p.engine.loads.ask(p, inBackground)
	}
}

// loaded waits until the package is loaded, for as long as its calls wait for one
// another at most. It returns what the load failed of, and the cause of ctx when
// that ends first.
func (p *Package) loaded(ctx context.Context) error {
	if p.later == nil {
		return nil
	}
	if p.isLoaded() {
		return nil
	}
	p.engine.loads.ask(p, forCall)
	timer := time.NewTimer(p.gate.limits.Wait)
	defer timer.Stop()
	select {
	case <-p.later.ended:
		return p.later.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return &BusyError{Scope: p.gate.scope, RetryAfter: time.Second, Loading: true}
	}
}

// finish does the rest of the load. Nobody waits for it once the package or the
// engine lets no further call begin, so it is stopped then.
func (p *Package) finish() {
	ctx, c, err := p.begin(context.Background())
	if err != nil {
		p.later.end(err)
		return
	}
	defer p.end(c)
	ctx, unhook := p.running.waiting(ctx)
	defer unhook()
	ctx, unhookEngine := p.engine.running.waiting(ctx)
	defer unhookEngine()
	err = p.rest(ctx)
	if err != nil && ctx.Err() != nil {
		p.later.end(context.Cause(ctx))
		return
	}
	p.later.end(err)
	if p.later.done != nil {
		p.later.done(err)
	}
}

// rest is what was left for later.
func (p *Package) rest(ctx context.Context) (err error) {
	phase := "module"
	defer p.loadFault(&phase, &err)
	now, err := p.complete(ctx, &phase, nil)
	if err != nil {
		return err
	}
	phase = "describe"
	if p.later.check == nil {
		return errNoCheck
	}
	if err := p.later.check(now); err != nil {
		return err
	}
	p.engine.hasKind(p.name, p.kind, p.why)
	return nil
}

// isLoaded reports whether nothing of the package is left to be loaded.
func (p *Package) isLoaded() bool {
	if p.later == nil {
		return true
	}
	select {
	case <-p.later.ended:
		return p.later.failed == nil
	default:
		return false
	}
}

// end lets go of those who wait.
func (l *later) end(err error) {
	l.failed = err
	close(l.ended)
}
