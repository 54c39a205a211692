package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// execution is one run of a guest: the transaction that it is, the scratch and
// the clock that it has, and the ledger that it answers to. Close it.
type execution struct {
	ledger  *capabilities.Ledger
	tx      *tx.Tx
	keys    *kv.Overlay
	box     *outbox.Box
	stored  bool          // there is a store, which they are in
	reader  *lateSnapshot // of the store; nil: there is none
	scratch *volume.Overlay
	mounts  []*files.Volume // in the order of the requests, scratch last
	clock   callClock
	live    func() error // whether the call still has time
	limits  tool.Limits
}

// world is what one run of a call works on. The zero value is nothing.
type world struct {
	volumes []tx.Volume
	store   store.Store       // nil: none
	intents *tx.Intents       // of the store
	reader  *lateSnapshot     // of the store, for this run
	space   store.Space       // of the package's keys
	shared  map[string]string // names of the managed volumes that packages share, by volume
	sender  outbox.Sender
}

// newExecution returns a run that has time until ctx ends.
func newExecution(ctx context.Context, w world, l *capabilities.Ledger, limits tool.Limits) *execution {
	x := &execution{ledger: l, clock: newCallClock(), live: ctx.Err, limits: limits, stored: w.store != nil, reader: w.reader}
	// Without a store there are none, and what is tried on them is judged all the same.
	keys, messages := kv.Nothing(), outbox.Nothing()
	if x.stored {
		keys, messages = kv.Stored(w.reader, w.space), outbox.Stored(w.reader, w.sender.Space())
	}
	x.keys = kv.NewOverlay(keys, kv.Options{
		Space: w.space, Budget: keyBudget(limits), Quota: keyQuota, Usage: w.usage(w.space),
	})
	x.box = outbox.New(messages, outbox.Options{
		Sender: w.sender, Ledger: l, Now: x.clock.now, Bytes: limits.Writes, Quota: boxQuota, Usage: w.usage(w.sender.Space()),
	})
	parts := tx.Parts{Volumes: w.volumes, Others: x.others(), Store: w.store, Intents: w.intents}
	x.tx = tx.Begin(parts, x.volumeOptions())
	x.mount(w.volumes)
	return x
}

// shadow returns an execution on what x would leave, as if that were committed.
// The clock is that much later. x must be closed after it.
func (x *execution) shadow(volumes []tx.Volume, l *capabilities.Ledger, later time.Duration) *execution {
	s := &execution{ledger: l, clock: newCallClock().later(later), live: x.live, limits: x.limits, stored: x.stored, reader: x.reader}
	s.keys = kv.NewOverlay(x.keys.Result(), kv.Options{Budget: keyBudget(x.limits), Quota: keyQuota, Usage: x.keys.Usage})
	s.box = x.box.Shadow(l, s.clock.now)
	s.tx = x.tx.Shadow(s.others(), s.volumeOptions())
	s.mount(volumes)
	return s
}

// What the keys, and the messages, of one principal's package may take in all.
var (
	keyQuota = store.Usage{Keys: 1_000_000, Bytes: 256 << 20}
	boxQuota = store.Usage{Keys: 10_000, Bytes: 64 << 20}
)

// usage asks the store what a space holds.
func (w world) usage(s store.Space) func(context.Context) (store.Usage, error) {
	if w.store == nil {
		return nil
	}
	return func(ctx context.Context) (store.Usage, error) { return w.store.Usage(ctx, s) }
}

func keyBudget(l tool.Limits) *kv.Budget { return &kv.Budget{Bytes: l.Writes, Keys: l.Files} }

func (x *execution) volumeOptions() volume.Options {
	return volume.Options{Budget: &volume.Budget{Bytes: x.limits.Writes, Files: x.limits.Files}, Now: x.clock.now, Live: x.live}
}

// others returns what of the environment is no tree of files.
func (x *execution) others() []tx.Participant {
	if !x.stored {
		return nil
	}
	return []tx.Participant{tx.Keys(x.keys), tx.Outbox(x.box)}
}

func (x *execution) mount(volumes []tx.Volume) {
	for _, v := range volumes {
		x.mounts = append(x.mounts, files.New(v.Name, v.Path, x.tx.Overlay(v.Name), x.ledger))
	}
	scratch, overlay := newScratch(x.clock, x.ledger)
	x.scratch = overlay
	x.mounts = append(x.mounts, scratch)
}

// serve returns what an instance serves in this run.
func (x *execution) serve(p *wasi.Process, n *hostmcp.Notes) *served {
	return &served{process: p, notes: n, keys: kv.New(x.keys, x.ledger), box: x.box}
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
	case x.reader.failed() != nil: // whatever the guest made of it
		return HostError, &HostFault{x.reader.failed()}
	case hostFault(err) != nil && !isConflict(err):
		return HostError, hostFault(err)
	case isConflict(err):
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

// isSealed reports whether start-up code touched what no request had been
// delivered for.
func isSealed(err error) bool {
	if _, ok := errors.AsType[*files.SealedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*kv.SealedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*outbox.SealedError](err)
	return ok
}

// unprepared says why a call was not prepared.
func (x *execution) unprepared(ctx context.Context, err error) (Outcome, error) {
	if v, ok := errors.AsType[*capabilities.Violation](err); ok {
		return Violation, x.ledger.Violate(*v)
	}
	switch {
	case asLimit(err) != nil:
		return Limit, asLimit(err)
	case isConflict(err):
		return Conflict, err
	case ctx.Err() != nil:
		return Timeout, context.Cause(ctx)
	}
	return HostError, &HostFault{err}
}

// isConflict reports whether something that the call read has changed since.
func isConflict(err error) bool {
	return errors.Is(err, volume.ErrConflict) || errors.Is(err, store.ErrConflict)
}

// close drops what was not committed. It can be repeated.
func (x *execution) close() error {
	return errors.Join(x.tx.Rollback(), x.scratch.Close())
}
