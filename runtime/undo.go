package runtime

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
)

// UndoTool is the name in [CallInfo.Tool] of a call that takes back another.
const UndoTool = "sandboxd_undo"

// Errors of undoing, besides those of package undo.
var (
	// ErrNoStore: the engine has no store, so nothing is kept.
	ErrNoStore = errors.New("no store")
	// ErrSent: a message that the call released has been delivered.
	ErrSent = errors.New("message was sent")
)

// UndoRequest asks for a call to be taken back.
type UndoRequest struct {
	CallID     string
	Principal  string   // whose call it is; empty: "local"
	Packages   []string // whose calls may be taken back; default: none
	AnyPackage bool     // any package's call may be, as the operator's own tools have it
	Trace      TraceContext
}

func (r UndoRequest) reaches(pkg string) bool {
	return r.AnyPackage || slices.Contains(r.Packages, pkg)
}

// Undo takes back what a call of a principal committed: files, keys, and messages
// that were not delivered yet. That is a call of its own, with an id and a record,
// and can be taken back too. Its outcome is Conflict where something is not as the
// call left it (the error is an [*undo.ChangedError] or [ErrSent]), and Refused
// where there is no record of the call that the request reaches, or not a complete
// one.
func (e *Engine) Undo(ctx context.Context, r UndoRequest) *Result {
	if r.Principal == "" {
		r.Principal = LocalPrincipal
	}
	ctx, done, closed := e.running.begin(ctx)
	if closed == nil {
		defer done()
	}
	u := &undoing{engine: e, principal: r.Principal, request: r}
	w := &reporter{observer: e.observer, live: &e.live, info: CallInfo{
		ID: crand.Text(), Principal: r.Principal, Tool: UndoTool, Start: time.Now(), Trace: r.Trace,
	}}
	u.report = w
	if e.store != nil {
		if k, err := u.find(ctx); err == nil {
			w.info.Package = k.Package
		}
	}
	w.start()
	result := u.judged(ctx, closed)
	result.CallID, result.Duration = w.info.ID, time.Since(w.info.Start)
	if result.Outcome != OK {
		result.Partial = leftByFault(result.Err) != nothingSaved
		result.Output = text(true, u.explain(result))
	}
	result.also(w.take())
	w.end(result)
	result.also(w.take())
	return result
}

// undoing is one undo under way.
type undoing struct {
	engine    *Engine
	report    *reporter
	principal string
	request   UndoRequest
}

func (u *undoing) find(ctx context.Context) (*undo.Kept, error) {
	now, err := u.engine.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	k, err := undo.Find(ctx, now, u.principal, u.request.CallID)
	if err == nil && !u.request.reaches(k.Package) {
		return nil, fmt.Errorf("call %q: %w", u.request.CallID, undo.ErrNotFound)
	}
	return k, err
}

// undoTime is how long an undo may take, as long as the slowest call.
const undoTime = 10 * time.Minute

// admit waits until there is room for an undo among the calls: it holds the old
// contents in memory. A host that has less lets one in at a time.
func (u *undoing) admit(ctx context.Context) (*ticket, error) {
	ctx, unhook := u.engine.running.waiting(ctx)
	defer unhook()
	g := u.engine.gate
	return g.enter(ctx, u.principal, min(u.engine.retain.UndoCall, g.limits.Memory))
}

func (u *undoing) judged(ctx context.Context, closed error) (result *Result) {
	defer survive(&result)
	switch {
	case u.report.fault != nil:
		return ended(HostError, u.report.take())
	case closed != nil:
		return ended(Refused, closed)
	case u.engine.store == nil:
		return ended(Refused, ErrNoStore)
	}
	began := time.Now()
	own, err := u.admit(ctx)
	waited := time.Since(began)
	if err != nil {
		result = unadmitted(err)
	} else {
		defer own.leave()
		result = u.untilSettled(ctx)
	}
	result.Waited = waited
	return result
}

// untilSettled takes the call back once nobody is in the way, if it can be.
func (u *undoing) untilSettled(ctx context.Context) *Result {
	ctx, cancel := context.WithTimeoutCause(ctx, undoTime, &TimeoutError{undoTime})
	defer cancel()
	for run := 0; ; run++ {
		began := time.Now()
		r := u.run(ctx)
		if r.Outcome != Conflict || isChanged(r.Err) || run == maxReruns || ctx.Err() != nil {
			return r
		}
		u.report.conflict()
		pause(ctx, time.Since(began)<<run)
	}
}

func isChanged(err error) bool { return errors.Is(err, undo.ErrChanged) || errors.Is(err, ErrSent) }

// run tries once to take the call back.
func (u *undoing) run(ctx context.Context) *Result {
	kept, err := u.find(ctx)
	if err != nil {
		return u.failed(ctx, err)
	}
	w, release, err := u.world(ctx, kept)
	if err != nil {
		return u.failed(ctx, err)
	}
	defer func() { _ = release() }() // folders that were only read so far, or are as committed
	keys := kv.NewOverlay(kv.Stored(w.reader, w.space), kv.Options{
		Space: w.space, Budget: &kv.Budget{Bytes: math.MaxInt64, Keys: math.MaxInt64, Seen: math.MaxInt64},
		Quota: store.Usage{Keys: math.MaxInt64, Bytes: math.MaxInt64},
	})
	t := tx.Begin(
		tx.Parts{Volumes: w.volumes, Others: []tx.Participant{tx.Keys(keys)}, Store: w.store, Intents: w.intents},
		volume.Options{Budget: &volume.Budget{Bytes: math.MaxInt64, Files: math.MaxInt64}, Live: ctx.Err},
	)
	defer t.Rollback()
	err = undo.Restore(ctx, kept.Record, undo.Where{Volumes: t.Overlay, Keys: undoKeys{keys}, Blobs: u.engine.store})
	if err != nil {
		return u.failed(ctx, err)
	}
	return u.commit(ctx, t, w, keys, kept)
}

// world returns where the call's changes are.
func (u *undoing) world(ctx context.Context, k *undo.Kept) (w world, release func() error, err error) {
	e := u.engine
	w = world{
		store: e.store, intents: e.intents, reader: &lateSnapshot{store: e.store}, shared: map[string]string{},
		space: store.Space{Principal: u.principal, Package: k.Package, Area: kv.Area},
	}
	var opened []*folder
	release = func() error {
		var errs []error
		for _, d := range opened {
			errs = append(errs, e.folders.release(d))
		}
		return errors.Join(errs...)
	}
	for _, v := range k.Volumes {
		t := tx.Volume{Name: v.Name, Path: v.Path}
		switch {
		case v.Folder != "":
			d, err := e.folders.acquire(v.Folder, e.openFolder)
			if err != nil {
				return w, nil, errors.Join(err, release())
			}
			opened = append(opened, d)
			if err := d.dir.Settle(ctx); err != nil {
				return w, nil, errors.Join(err, release())
			}
			t.Store = d.dir
		case v.Shared != "":
			w.shared[v.Name] = v.Shared
			t.Tree = stored.New(ctx, stored.Options{Reader: stored.At(w.reader), Blobs: e.store, Space: stored.SpaceOf(u.principal, sharedPackage, v.Shared)})
		default:
			t.Tree = stored.New(ctx, stored.Options{Reader: stored.At(w.reader), Blobs: e.store, Space: stored.SpaceOf(u.principal, k.Package, v.Name)})
		}
		w.volumes = append(w.volumes, t)
	}
	return w, release, nil
}

// commit saves what was restored, with what undoing that takes.
func (u *undoing) commit(ctx context.Context, t *tx.Tx, w world, keys *kv.Overlay, kept *undo.Kept) *Result {
	r := ended(OK, nil)
	var record *undo.Record
	prepared, err := t.Prepare(ctx, func(ctx context.Context, p *tx.Prepared, v tx.View) (err error) {
		record, err = recordOf(ctx, u.engine, w, keys, p, v)
		return err
	})
	if err != nil {
		return u.failed(ctx, err)
	}
	r.Effects = shown(prepared.Effects)
	with := store.Commit{ID: u.report.info.ID, Time: time.Now().UTC()}
	if err := u.mark(ctx, &with, w, kept, record); err != nil {
		return u.failed(ctx, err)
	}
	saved := *r
	saved.CallID, saved.Committed, saved.Duration = with.ID, true, time.Since(u.report.info.Start)
	with.Records, r.Recorded = u.report.record(&saved)
	if err := u.report.take(); err != nil {
		return ended(HostError, err)
	}
	err = t.Commit(context.WithoutCancel(ctx), prepared, with)
	switch {
	case err == nil, errors.Is(err, tx.ErrPending):
		r.Committed = true
		r.also(err)
		r.Output = text(false, fmt.Sprintf("Call %s of %s was undone.", kept.CallID, kept.Tool))
		return r
	}
	return u.failed(ctx, err)
}

// mark adds what says that the call was taken back, and its messages.
func (u *undoing) mark(ctx context.Context, with *store.Commit, w world, kept *undo.Kept, record *undo.Record) error {
	record.CallID, record.Principal, record.Package, record.Tool = with.ID, u.principal, kept.Package, UndoTool
	record.Time, record.Undoes = with.Time, kept.CallID
	marked, err := kept.Mark(with.ID)
	if err != nil {
		return err
	}
	if err := u.withdraw(ctx, with, w, kept, record); err != nil {
		return err
	}
	writes, err := record.Writes(u.engine.retain.Undo)
	if err != nil {
		return err
	}
	with.Guards = append(with.Guards, kept.Guard)
	with.Writes = append(append(with.Writes, marked), writes...)
	if kept.Undoes == "" {
		return nil
	}
	return u.unmark(ctx, with, w, kept.Undoes)
}

// unmark takes the mark off the call whose undo is taken back.
func (u *undoing) unmark(ctx context.Context, with *store.Commit, w world, callID string) error {
	first, err := undo.Find(ctx, w.reader, u.principal, callID)
	if errors.Is(err, undo.ErrNotFound) {
		return nil // it is not kept any more
	}
	if err != nil {
		return err
	}
	write, err := first.Mark("")
	if err != nil {
		return err
	}
	with.Guards, with.Writes = append(with.Guards, first.Guard), append(with.Writes, write)
	return nil
}

// withdraw takes back the messages that the call released, as long as none of
// them is on its way. Nothing sends them again: the undo cannot be taken back.
func (u *undoing) withdraw(ctx context.Context, with *store.Commit, w world, kept *undo.Kept, record *undo.Record) error {
	space := store.Space{Principal: u.principal, Package: kept.Package, Area: store.AreaOutbox}
	for _, m := range kept.Outbox {
		host, key, _ := strings.Cut(m, " ")
		guards, writes, err := outbox.Withdraw(ctx, w.reader, space, host, key)
		if errors.Is(err, outbox.ErrNotPending) {
			return fmt.Errorf("%w: to %s", ErrSent, host)
		}
		if err != nil {
			return err
		}
		with.Guards, with.Writes = append(with.Guards, guards...), append(with.Writes, writes...)
		record.Lose(host, undo.WhyWithdrawn)
	}
	return nil
}

// failed returns the result of an undo that left nothing.
func (u *undoing) failed(ctx context.Context, err error) *Result {
	switch {
	case isChanged(err), isConflict(err), errors.Is(err, capabilities.EAGAIN):
		return ended(Conflict, err)
	case errors.Is(err, undo.ErrNotFound), errors.Is(err, undo.ErrUndone), errors.Is(err, undo.ErrIncomplete):
		return ended(Refused, err)
	case ctx.Err() != nil:
		return ended(Timeout, context.Cause(ctx))
	}
	return ended(HostError, &HostFault{err})
}

// explain says why nothing was undone. It names nothing that a guest made.
func (u *undoing) explain(r *Result) string {
	why := "a fault of the host, recorded as call " + r.CallID
	switch {
	case errors.Is(r.Err, undo.ErrNotFound):
		why = "there is no record of it: it committed nothing, was too long ago, or is not yours"
	case errors.Is(r.Err, undo.ErrUndone):
		why = "it was undone already"
	case errors.Is(r.Err, undo.ErrIncomplete):
		why = "not all that it replaced could be kept"
	case errors.Is(r.Err, ErrSent):
		why = "a message that it sent has been delivered"
	case r.Outcome == Conflict:
		why = "what it left has been changed since"
	case r.Outcome == Timeout:
		why = interruption(r.Err)
	case errors.Is(r.Err, ErrBusy):
		why = "too many calls are running; try again later"
	case errors.Is(r.Err, ErrNoStore):
		why = "this host keeps nothing that could be undone"
	case errors.Is(r.Err, ErrClosed):
		why = closing(r.Err)
	}
	switch {
	case errors.Is(r.Err, store.ErrUnknown):
		return "It is not known whether the call was undone: the store did not answer. Try again, which does it once at most."
	case r.Partial:
		return "It is not known whether the call was undone: " + why + ". Try again, which does it once at most."
	}
	return "The call was not undone: " + why + "."
}

// Changes returns what the calls of a principal's package committed and is kept,
// the newest first, at most limit.
func (e *Engine) Changes(ctx context.Context, principal, pkg string, limit int) ([]*undo.Kept, error) {
	if e.store == nil {
		return nil, ErrNoStore
	}
	if principal == "" {
		principal = LocalPrincipal
	}
	now, err := e.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return undo.Recent(ctx, now, undo.Space(principal, pkg), limit)
}
