package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
)

// settle commits a call that ended well, unless its result is none that the tool
// promised or every reader of JSON reads the same in, its time is over, or what
// it did is not on record.
func (c *call) settle(ctx context.Context, r *Result) {
	structured, err := c.tool.Schemas.Output(r.Output.StructuredContent)
	if err != nil && len(c.tool.Definition.OutputSchema) == 0 {
		err = errors.Join(errAnswer, err)
	}
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Err, r.Output = Timeout, context.Cause(ctx), Output{}
		return
	case err != nil && r.Outcome == OK:
		r.Outcome, r.Err, r.Output = ToolError, err, Output{}
		return
	}
	r.Output.StructuredContent = structured
	if c.report.fault != nil {
		r.Outcome, r.Err = HostError, c.report.take()
		return
	}
	began := time.Now()
	ended := r.Outcome // well, or in an error of the tool's that is saved all the same
	c.transact(ctx, r)
	if r.Outcome == OK {
		r.Outcome = ended
	}
	if !c.dryRun {
		c.report.commit(time.Since(began))
	}
}

// transact prepares what the guest did and, unless it is a dry run, applies it.
// Once it is prepared it cannot be cancelled, and how it went no longer depends
// on the deadline.
func (c *call) transact(ctx context.Context, r *Result) {
	j := &judgement{call: c, result: r}
	prepared, err := c.tx.Prepare(ctx, j.effects, j.claims, j.keep)
	if err != nil {
		r.Outcome, r.Err = c.unprepared(ctx, err)
		return
	}
	if c.dryRun {
		r.Outcome = OK
		if len(c.execution.ledger.Violations()) > 0 {
			r.Outcome = Violation
		}
		return
	}
	if !c.urgent && !prepared.Empty() {
		release, err := c.turn.commit(ctx)
		if err != nil {
			r.Outcome, r.Err, r.Output = Timeout, err, Output{}
			return
		}
		defer release()
	}
	with, err := c.enclose(r, j, prepared)
	if err != nil {
		r.Outcome, r.Err = HostError, &HostFault{err}
		return
	}
	r.Committed, r.Outcome, r.Err = c.commit(ctx, prepared, with)
	if r.Committed {
		c.committed(j)
	}
}

// commit applies what was prepared.
func (x *execution) commit(ctx context.Context, p *tx.Prepared, with store.Commit) (committed bool, o Outcome, err error) {
	switch err := x.tx.Commit(ctx, p, with); {
	case err == nil:
		return true, OK, nil
	case errors.Is(err, tx.ErrPending): // nobody sees the folder before it is as committed
		return true, OK, &HostFault{err}
	case isConflict(err), errors.Is(err, capabilities.EAGAIN): // others held the volume too long
		return false, Conflict, err
	default:
		return false, HostError, &HostFault{err}
	}
}

// enclose returns what is committed with the call: what undoing it takes, its
// result under its idempotency key, its record.
func (c *call) enclose(r *Result, j *judgement, p *tx.Prepared) (store.Commit, error) {
	with := store.Commit{ID: c.report.info.ID, Time: time.Now().UTC()}
	if c.world.store == nil {
		return with, nil
	}
	if j.record != nil {
		writes, err := j.record.Writes(c.pkg.engine.retain.Undo)
		if err != nil {
			return with, err
		}
		with.Writes = append(with.Writes, writes...)
	}
	if c.once != nil {
		guard, write, err := c.once.keepResult(r, with.Time)
		if err != nil {
			return with, err
		}
		with.Guards, with.Writes = append(with.Guards, guard), append(with.Writes, write)
	}
	if p.Empty() && len(with.Writes) == 0 {
		return with, nil // a call that leaves nothing costs no commit
	}
	saved := *r
	saved.CallID, saved.Committed = with.ID, true
	c.witness(&saved)
	saved.DroppedNotes, saved.Duration = c.report.notes.Dropped(), time.Since(c.report.info.Start)
	with.Records, r.Recorded = c.report.record(&saved)
	return with, c.report.take()
}

// committed notes that the tool was looked at, and tells what left the host with
// the commit. What was not committed, or changed nothing, was no look.
func (c *call) committed(j *judgement) {
	if j.looked && !j.prepared.Empty() {
		c.pkg.looked.Store(c.tool.Definition.Name, struct{}{})
	}
	for _, e := range j.prepared.Effects {
		if e.Verb == capabilities.Send && e.Kind == capabilities.KindOutbox {
			c.report.sent(SentOutbox)
		}
	}
}
