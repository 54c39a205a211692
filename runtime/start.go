package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// start runs the module's start-up code once, to see that it keeps its hands off the
// volumes, asks a module that describes itself for its tools, and decides how
// instances for calls are made. It keeps phase at what an error belongs to.
func (p *Package) start(ctx context.Context, phase *string) ([]tool.Definition, error) {
	definitions, err := p.started(ctx, phase)
	no, refused := errors.AsType[*InputError](err)
	if !refused {
		return definitions, err
	}
	p.because = no
	if err := p.whole(ctx, phase); err != nil {
		return nil, err
	}
	return p.started(ctx, phase)
}

// started is start for the module that is compiled. It returns an [*InputError] for
// one that is made to be left at its first read, and cannot be.
func (p *Package) started(ctx context.Context, phase *string) ([]tool.Definition, error) {
	*phase = "start"
	m := p.source.Manifest
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limits.Timeout, &TimeoutError{m.Limits.Timeout})
	defer cancel()
	log := &cappedBuffer{limit: int(m.Limits.Output)}
	defer func() { p.log = log.b }()
	s := &startUp{stderr: log, ledger: nobody(), seat: p.engine.cpus.seat()}
	if err := s.seat.Take(ctx); err != nil {
		return nil, err
	}
	defer s.seat.Leave()
	definitions, err := m.Tools, error(nil)
	warmUp := m.Warmup != nil && p.factory.reactor
	if len(definitions) == 0 && warmUp { // on an instance of its own: describing is no part of being warm
		if definitions, err = p.describe(ctx, s, phase); err != nil {
			return nil, err
		}
	}
	if warmUp {
		*phase = "warmup"
		if p.factory.warmUp, err = warmUpRequest(m.Warmup, definitions); err != nil {
			return nil, err
		}
	}
	i, err := p.firstInstance(ctx, s)
	if err == nil {
		err = p.take(ctx, i)
	}
	if err != nil {
		return nil, startFault(ctx, phase, err)
	}
	defer p.engine.discard(context.WithoutCancel(ctx), i)
	if len(definitions) > 0 {
		return definitions, nil
	}
	if f := p.factory; f.reactor && f.shape.reseeds && !f.reseeds { // what failed may have left it in the midst
		return p.describe(ctx, s, phase)
	}
	*phase = "describe"
	return i.describe(ctx, m.Limits.Output)
}

// nobody returns a ledger of no call, which grants nothing.
func nobody() *capabilities.Ledger {
	return capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{})
}

// firstInstance makes an instance and runs its start-up code, and finds out whether calls
// begin at the first read of standard input where the manifest says that they may.
// An instance of a module that can be left is there then.
func (p *Package) firstInstance(ctx context.Context, s *startUp) (*Instance, error) {
	i, err := p.factory.start(ctx, s)
	if err != nil || !p.source.Manifest.Reseeds {
		return i, err
	}
	i.bind(p.factory)
	err = p.factory.reach(ctx, i)
	if err == nil && p.factory.leaves {
		p.atInput = true
		return i, nil
	}
	p.engine.discard(context.WithoutCancel(ctx), i)
	no, refused := errors.AsType[*InputError](err)
	switch {
	case refused && p.factory.leaves:
		return nil, no
	case refused:
		p.because = no
	case err != nil:
		return nil, &startError{phase: "start", err: err, stopped: true}
	default:
		p.atInput = true
	}
	return p.factory.start(ctx, s)
}

// whole makes the package's own module ready in place of one that can be left. Start-up
// code is not timed meanwhile.
func (p *Package) whole(ctx context.Context, phase *string) error {
	*phase = "module"
	err := p.compiled.Close(ctx)
	p.compiled = nil // a module is closed once: others may have compiled the same
	return errors.Join(err, p.compile(ctx, p.source.Module, phase))
}

// take makes an instance whose start-up code has run ready, and the instances for
// calls ones that are as it is, where they can be.
func (p *Package) take(ctx context.Context, i *Instance) error {
	f := p.factory
	if f.leaves {
		return p.pooled(ctx, i, KindStdin)
	}
	why, err := f.first(ctx, i)
	if err != nil {
		return err
	}
	switch p.engine.strategy {
	case StrategyImage:
		p.why = cmp.Or(f.shape.why, why)
	case StrategyNew, StrategyPrestarted:
		p.why = ReasonStrategy
	}
	if p.why != "" {
		p.kind, p.instances = KindNew, newFresh(f, p.engine.strategy != StrategyNew)
		return nil
	}
	kind := KindInstantiated
	if f.reactor {
		kind = KindInitialized
	}
	if no, ok := errors.AsType[*InputError](p.because); ok {
		p.why = no.Reason
	}
	return p.pooled(ctx, i, kind)
}

// pooled makes the instances for calls ones that are put back to what this one is.
func (p *Package) pooled(ctx context.Context, i *Instance, k Kind) error {
	state, err := i.snapshot(p.factory.shape.globals)
	if err != nil {
		p.engine.discard(ctx, i)
		return &HostFault{err}
	}
	p.kind, p.instances = k, newPool(p.factory, state)
	return nil
}

// describe makes an instance and asks it for the tools.
func (p *Package) describe(ctx context.Context, s *startUp, phase *string) ([]tool.Definition, error) {
	i, err := p.factory.start(ctx, s)
	if err != nil {
		return nil, startFault(ctx, phase, err)
	}
	defer p.engine.discard(context.WithoutCancel(ctx), i)
	*phase = "describe"
	return i.describe(ctx, p.factory.limits.Output)
}

// describe asks a module for its tools.
func (i *Instance) describe(ctx context.Context, limit int64) ([]tool.Definition, error) {
	f := i.module.ExportedFunction("sandboxd_describe")
	if f == nil {
		return nil, fmt.Errorf("%w: no tools in the manifest and no export %q", ErrLink, "sandboxd_describe")
	}
	packed, err := f.Call(ctx)
	if err != nil {
		stop := i.preparation.process.Stop()
		return nil, died(ctx, err, stop)
	}
	raw, err := readPacked(i.module, packed[0], limit)
	if err != nil {
		return nil, err
	}
	return tool.ParseDescription(raw)
}

// startFault returns what start-up code died of, and sets phase to where.
func startFault(ctx context.Context, phase *string, err error) error {
	s, ok := errors.AsType[*startError](err)
	if !ok {
		return err
	}
	*phase = s.phase
	if s.stopped {
		return died(ctx, nil, s.err)
	}
	return died(ctx, s.err, nil)
}

// died returns what a guest died of: what the host stopped it for before what the
// engine says about it.
func died(ctx context.Context, err, stop error) error {
	if stop != nil {
		return cmp.Or(asLimit(stop), stop)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &TrapError{Err: err}
}
