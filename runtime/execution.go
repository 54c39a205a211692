package runtime

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// execution is one run of a guest: the transaction that it is, the scratch and
// the clock that it has, and the ledger that it answers to. Close it.
type execution struct {
	ledger *capabilities.Ledger
	tx     *tx.Tx
	keys   *kv.Overlay
	box    *outbox.Box
	stored bool            // there is a store, which they are in
	reader *lateSnapshot   // of the store; nil: there is none
	files  volume.Base     // of the package; nil: none
	mounts []*files.Volume // in the order of the requests, the package's files, scratch last
	clock  *clock
	now    func() time.Time // of the clock
	random io.Reader
	seat   *seat        // on a processor
	live   func() error // whether the call still has time; nil: there are no volumes
	limits tool.Limits
	own    parts
}

// parts are what an execution has alone and always, in one piece with it.
type parts struct {
	clock    clock
	seat     seat
	random   randomStream
	scratch  lateScratch
	budget   kv.Budget // of keys
	keys     kv.Overlay
	keysBase kv.StoredKeys
	box      outbox.Box
	boxBase  outbox.StoredMessages
	others   [2]tx.Participant
	mounts   [4]*files.Volume // where these are enough
	served   served
	grant    kv.Keys
	meter    hostengine.Meter
}

// lateScratch is a scratch that is made when it is first touched.
type lateScratch struct {
	of      *execution
	overlay *volume.Overlay
}

// Overlay returns it.
func (s *lateScratch) Overlay() *volume.Overlay {
	if s.overlay == nil {
		s.overlay = newScratch(s.of.now)
	}
	return s.overlay
}

func (s *lateScratch) close() error {
	if s.overlay == nil {
		return nil
	}
	return s.overlay.Close()
}

// world is what one run of a call works on. The zero value is nothing.
type world struct {
	volumes []tx.Volume
	files   volume.Base       // of the package; nil: none
	store   store.Store       // nil: none
	intents *tx.Intents       // of the store
	reader  *lateSnapshot     // of the store, for this run
	space   store.Space       // of the package's keys
	shared  map[string]string // names of the managed volumes that packages share, by volume
	sender  outbox.Sender
	cpus    *processors
}

// newExecution returns a run that has time until ctx ends.
func newExecution(ctx context.Context, w world, l *capabilities.Ledger, limits tool.Limits) *execution {
	x := &execution{ledger: l, limits: limits, stored: w.store != nil, reader: w.reader, files: w.files}
	x.begin(0)
	x.own.seat.cpus = w.cpus
	x.seat = &x.own.seat
	if x.reader != nil {
		x.reader.seat = x.seat
	}
	if len(w.volumes) > 0 {
		x.live = ctx.Err
	}
	x.open(&w)
	parts := tx.Parts{Volumes: w.volumes, Others: x.others(), Store: w.store, Intents: w.intents}
	x.tx = tx.Begin(parts, x.volumeOptions(w.volumes))
	x.mount(w.volumes)
	return x
}

// begin gives the execution what it has alone. Its clock is that much later.
func (x *execution) begin(later time.Duration) {
	x.own.clock = *newClock(x.limits.Timeout, later)
	x.own.budget.Bytes, x.own.budget.Keys = x.limits.Writes, x.limits.Files
	x.clock, x.random = &x.own.clock, &x.own.random
	x.now = x.clock.Now
}

// open gives the execution keys and an outbox. Without a store there are none, and
// what is tried on them is judged all the same.
func (x *execution) open(w *world) {
	keys, messages := kv.Nothing(), outbox.Nothing()
	var held store.Meter
	if x.stored {
		x.own.keysBase, x.own.boxBase = *kv.Stored(w.reader, w.space), *outbox.Stored(w.reader, w.sender.Space())
		keys, messages, held = &x.own.keysBase, &x.own.boxBase, w.store
	}
	x.own.keys = *kv.NewOverlay(keys, kv.Options{Space: w.space, Budget: &x.own.budget, Quota: keyQuota, Held: held})
	x.own.box = *outbox.New(messages, outbox.Options{
		Sender: w.sender, Ledger: x.ledger, Now: x.now, Bytes: x.limits.Writes, Quota: boxQuota, Held: held,
	})
	x.keys, x.box = &x.own.keys, &x.own.box
}

// shadow returns an execution on what x would leave, as if that were committed.
// The clock is that much later. x must be closed after it.
func (x *execution) shadow(volumes []tx.Volume, l *capabilities.Ledger, later time.Duration) *execution {
	s := &execution{
		ledger: l, live: x.live, limits: x.limits, stored: x.stored, reader: x.reader, seat: x.seat, files: x.files,
	}
	s.begin(later)
	s.keys = x.keys.Shadow(&s.own.budget)
	s.box = x.box.Shadow(l, s.now)
	s.tx = x.tx.Shadow(s.others(), s.volumeOptions(volumes))
	s.mount(volumes)
	return s
}

// What the keys, and the messages, of one principal's package may take in all.
var (
	keyQuota = store.Usage{Keys: 1_000_000, Bytes: 256 << 20}
	boxQuota = store.Usage{Keys: 10_000, Bytes: 64 << 20}
)

func (x *execution) volumeOptions(volumes []tx.Volume) volume.Options {
	if len(volumes) == 0 {
		return volume.Options{}
	}
	return volume.Options{Budget: &volume.Budget{Bytes: x.limits.Writes, Files: x.limits.Files}, Now: x.now, Live: x.live}
}

// others returns what of the environment is no tree of files.
func (x *execution) others() []tx.Participant {
	if !x.stored {
		return nil
	}
	x.own.others = [...]tx.Participant{tx.Keys(x.keys), tx.Outbox(x.box)}
	return x.own.others[:]
}

func (x *execution) mount(volumes []tx.Volume) {
	x.mounts = x.own.mounts[:0]
	for _, v := range volumes {
		x.mounts = append(x.mounts, files.New(v.Name, v.Path, x.tx.Mount(v.Name), x.ledger))
	}
	if x.files != nil {
		x.mounts = append(x.mounts, newFixed(x.files, x.ledger))
	}
	x.own.scratch.of = x
	x.mounts = append(x.mounts, files.Scratch(scratchMount, &x.own.scratch, x.ledger))
}

// serve returns what an instance serves in this run.
func (x *execution) serve(p *wasi.Process, n *hostmcp.Notes) *served {
	x.own.meter, x.own.grant = *hostengine.NewMeter(x.limits.Fuel), *kv.New(x.keys, x.ledger)
	x.own.served = served{process: p, meter: &x.own.meter, notes: n, keys: &x.own.grant, box: x.box}
	return &x.own.served
}

// process returns the process of the guest: o with the execution's own parts
// filled in.
func (x *execution) process(o wasi.Options) *wasi.Process {
	o.Volumes, o.Ledger, o.Processor = x.mounts, x.ledger, x.seat
	o.Random, o.Clock = x.random, x.clock
	return wasi.NewProcess(o)
}

// ended says how a guest ended: OK when it ended by itself and well. What the
// host recorded comes before what the guest made of it: a violation stands
// whatever the guest answered.
//
// refused says that it asked for more memory than there is.
func (x *execution) ended(ctx context.Context, err error, refused bool) (Outcome, error) {
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
	case x.clock.Late() != nil:
		return Timeout, x.clock.Late()
	case err == nil, exited && exit.Code == 0:
		return OK, nil
	case refused:
		return Limit, &LimitError{Limit: "memory", Most: x.limits.Memory, Err: err}
	case exited:
		return ToolError, &ExitError{exit.Code}
	case errors.Is(err, errAnswer), isSealed(err):
		return ToolError, err
	}
	return ToolError, &TrapError{err}
}

// unstarted says how start-up code ended that did not end well.
func (x *execution) unstarted(ctx context.Context, err error) (Outcome, error) {
	s, ok := errors.AsType[*startError](err)
	if !ok {
		return HostError, &HostFault{err}
	}
	if _, exited := errors.AsType[*wasi.ExitError](err); exited {
		return ToolError, &TrapError{err} // whatever its status: it was never ready
	}
	return x.ended(ctx, s.err, s.refused)
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
	return errors.Join(x.tx.Rollback(), x.own.scratch.close())
}
