package runtime

import (
	"context"
	"errors"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// execution is one run of a guest: the transaction that it is, the scratch and
// the clock that it has, and the ledger that it answers to. Close it.
type execution struct {
	ledger  *capabilities.Ledger
	tx      *tx.Tx
	scratch *volume.Overlay
	mounts  []*files.Volume // in the order of the requests, scratch last
	clock   callClock
}

func newExecution(stores []tx.Volume, l *capabilities.Ledger, limits tool.Limits) *execution {
	x := &execution{ledger: l, clock: newCallClock()}
	x.tx = tx.Begin(stores, volume.Options{
		Budget: &volume.Budget{Bytes: limits.Writes, Files: limits.Files},
		Now:    x.clock.now,
	})
	for _, s := range stores {
		x.mounts = append(x.mounts, files.New(s.Name, s.Path, x.tx.Overlay(s.Name), l))
	}
	scratch, overlay := newScratch(x.clock, l)
	x.scratch = overlay
	x.mounts = append(x.mounts, scratch)
	return x
}

// process returns the process of the guest: o with the execution's own parts
// filled in.
func (x *execution) process(o wasi.Options) *wasi.Process {
	o.Volumes, o.Ledger = x.mounts, x.ledger
	o.Random, o.Now, o.Monotonic = newRandom(), x.clock.now, x.clock.monotonic
	return wasi.NewProcess(o)
}

// ended says how a guest ended: OK when it ended by itself and well. What the
// host recorded comes before what the guest made of it: a violation stands
// whatever the guest answered.
func (x *execution) ended(ctx context.Context, i *Instance, process *wasi.Process, err error) (Outcome, error) {
	if stop := process.Stop(); stop != nil {
		err = stop
	}
	exit, exited := errors.AsType[*wasi.ExitError](err)
	switch {
	case len(x.ledger.Violations()) > 0 || errors.Is(err, capabilities.ErrViolation):
		return Violation, err
	case hostFault(err) != nil:
		return HostError, hostFault(err)
	case errors.Is(err, volume.ErrConflict):
		return Conflict, err
	case asLimit(err) != nil:
		return Limit, asLimit(err)
	case ctx.Err() != nil:
		return Timeout, context.Cause(ctx)
	case err == nil, exited && exit.Code == 0:
		return OK, nil
	case i.memory.refused:
		return Limit, &LimitError{Limit: "memory", Most: int64(i.memory.limit), Err: err}
	case exited:
		return ToolError, &ExitError{exit.Code}
	case errors.Is(err, errAnswer), isSealed(err):
		return ToolError, err
	}
	return ToolError, &TrapError{err}
}

func isSealed(err error) bool {
	_, ok := errors.AsType[*files.SealedError](err)
	return ok
}

// commit prepares what the guest did and, unless it is a dry run, applies it.
// Once it is prepared it cannot be cancelled, and how it went no longer depends
// on the deadline.
func (x *execution) commit(ctx context.Context, dryRun bool) (committed bool, o Outcome, err error) {
	prepared, err := x.tx.Prepare(ctx)
	if err != nil {
		o, err = x.unprepared(ctx, err)
		return false, o, err
	}
	if dryRun {
		return false, OK, nil
	}
	switch err := x.tx.Commit(context.WithoutCancel(ctx), prepared); {
	case err == nil:
		return true, OK, nil
	case errors.Is(err, volume.ErrConflict), errors.Is(err, capabilities.EAGAIN): // others held the volume too long
		return false, Conflict, err
	default:
		return false, HostError, &HostFault{err}
	}
}

// unprepared says why a call was not prepared.
func (x *execution) unprepared(ctx context.Context, err error) (Outcome, error) {
	if v, ok := errors.AsType[*capabilities.Violation](err); ok {
		return Violation, x.ledger.Violate(*v)
	}
	switch {
	case asLimit(err) != nil:
		return Limit, asLimit(err)
	case errors.Is(err, volume.ErrConflict):
		return Conflict, err
	case ctx.Err() != nil:
		return Timeout, context.Cause(ctx)
	}
	return HostError, &HostFault{err}
}

// close drops what was not committed. It can be repeated.
func (x *execution) close() error {
	return errors.Join(x.tx.Rollback(), x.scratch.Close())
}
