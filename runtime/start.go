package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// start makes one instance to see that the module's start-up code keeps its
// hands off the volumes, and asks a module that describes itself for its
// tools. It keeps phase at what an error belongs to.
func (p *Package) start(ctx context.Context, phase *string) ([]tool.Definition, error) {
	*phase = "start"
	m := p.source.Manifest
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limits.Timeout, &TimeoutError{m.Limits.Timeout})
	defer cancel()
	log := &cappedBuffer{limit: int(m.Limits.Output)}
	defer func() { p.log = log.b }()
	process := p.sealed(log, capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{}))
	defer process.Close()
	i, err := p.instances.Get(ctx, process)
	defer p.instances.Put(context.WithoutCancel(ctx), i, Discard)
	if err != nil {
		if s := (*startError)(nil); errors.As(err, &s) {
			*phase, err = s.phase, s.err
		}
		return nil, startFault(ctx, err, process)
	}
	if len(m.Tools) > 0 {
		return m.Tools, nil
	}
	*phase = "describe"
	return describe(ctx, i, process, m.Limits.Output)
}

// describe asks a module for its tools.
func describe(ctx context.Context, i *Instance, process *wasi.Process, limit int64) ([]tool.Definition, error) {
	f := i.module.ExportedFunction("sandboxd_describe")
	if f == nil {
		return nil, fmt.Errorf("%w: no tools in the manifest and no export %q", ErrLink, "sandboxd_describe")
	}
	packed, err := f.Call(ctx)
	if err != nil {
		return nil, startFault(ctx, err, process)
	}
	raw, err := readPacked(i.module, packed[0], limit)
	if err != nil {
		return nil, err
	}
	return tool.ParseDescription(raw)
}

// startFault returns what start-up code died of: what the host stopped it for
// before what the engine says about it.
func startFault(ctx context.Context, err error, process *wasi.Process) error {
	if stop := process.Stop(); stop != nil {
		return stop
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &TrapError{Err: err}
}
