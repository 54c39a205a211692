package runtime

import (
	"bytes"
	"context"
	"errors"

	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// guest runs the guest on an instance of its own and says how it ended.
func (c *call) guest(ctx context.Context, request []byte) *Result {
	// Where start-up code runs for this call it is this call's: what it tries is in the
	// call's record.
	c.startUp.stderr, c.startUp.ledger, c.startUp.seat = &c.stderr, c.execution.ledger, c.seat
	if err := c.seat.Take(ctx); err != nil {
		return ended(Timeout, err)
	}
	defer c.seat.Leave()
	i, err := c.pkg.instances.Get(ctx, &c.startUp)
	if err != nil {
		return ended(c.unstarted(ctx, err))
	}
	fate := Discard // also after a panic
	defer func() { c.pkg.instances.Put(i, fate) }()
	c.report.acquired()
	defer c.report.released()
	answer, err := c.invoke(ctx, i, request)
	r := ended(c.ended(ctx, err, i.memory.Refused()))
	fate = fateOf(r.Outcome, err)
	r.Fuel = c.fuel
	if r.Outcome == OK && err != nil && !c.command() {
		r.Outcome, r.Err = ToolError, &ExitError{} // a reactor has no exit status, so no good one either
	}
	if r.Outcome == OK {
		c.read(ctx, r, answer)
	} else if _, exited := errors.AsType[*ExitError](r.Err); exited && len(c.stdout.b) > 0 && c.command() {
		out, err := plainOutput(true, c.stdout.b, c.execution.limits.Output)
		if r.Output = out; err != nil {
			r.Outcome, r.Err = Limit, err
		}
	}
	return r
}

// invoke calls the guest, on an instance that nothing is bound to yet, with a
// process of its own. The error is what stopped it, before what the engine says.
func (c *call) invoke(ctx context.Context, i *Instance, request []byte) ([]byte, error) {
	c.clock.base = i.began + callLater
	process := c.processOf(i, request)
	defer process.Close()
	if i.exports.reseed != nil {
		if err := i.reseed(ctx, c.random, c.seat); err != nil {
			return nil, err
		}
	}
	answer, err := c.deliver(ctx, i, process, request)
	c.fuel = i.spent()
	if stop := process.Stop(); stop != nil {
		err = stop
	}
	return answer, err
}

func (c *call) command() bool { return c.pkg.source.Manifest.ABI == tool.Command }

func (c *call) streams(request []byte) wasi.Options {
	o := wasi.Options{Args: c.pkg.args, Env: c.pkg.env, Stdout: &c.stdout, Stderr: &c.stderr}
	if c.command() {
		o.Stdin = bytes.NewReader(request)
	}
	return o
}

// read takes the guest's answer into the result.
func (c *call) read(ctx context.Context, r *Result, answer []byte) {
	out, dropped, err := parseOutput(ctx, answer, c.execution.limits.Output)
	if err == nil && out.IsError { // what ends well is judged when it is settled
		out.StructuredContent, err = new(tool.Schemas).Output(out.StructuredContent)
	}
	r.DroppedMeta = dropped
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Err = Timeout, context.Cause(ctx)
	case asLimit(err) != nil:
		r.Outcome, r.Err = Limit, asLimit(err)
	case err != nil:
		r.Outcome, r.Err = ToolError, errors.Join(errAnswer, err)
	case out.IsError:
		r.Outcome, r.Output = ToolError, out
	default:
		r.Output = out
	}
}
