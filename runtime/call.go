package runtime

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// maxReruns is how often a call that met a conflict is run again.
const maxReruns = 3

// Call runs one call and returns what it came to; never nil. ctx cancels the
// call until it is prepared. A call whose outcome is not OK left nothing.
func (p *Package) Call(ctx context.Context, r Request) *Result {
	info := CallInfo{ID: crand.Text(), Principal: localPrincipal, Package: p.name, Tool: r.Tool, Start: time.Now()}
	o := p.engine.observer
	if o.CallStart != nil {
		o.CallStart(info)
	}
	result := p.judged(ctx, info, r)
	result.CallID = info.ID
	result.Duration = time.Since(info.Start)
	p.answer(r.Tool, result)
	if o.CallEnd != nil {
		o.CallEnd(info, result)
	}
	return result
}

// answer fills in what the client is told.
func (p *Package) answer(toolName string, r *Result) {
	if r.Outcome == OK {
		return
	}
	if r.Outcome != ToolError || len(r.Output.Content) == 0 {
		r.Output = Explain(toolName, r)
	}
	r.Output.IsError = true
	if r.Outcome == ToolError && wrote(r.Effects) {
		r.Output.Content = append(r.Output.Content, textContent("The changes that this call had made were not saved, because it ended in an error."))
	}
}

// judged checks the request, runs it, and turns a fault of the host into a
// result: one call must not take the others down.
func (p *Package) judged(ctx context.Context, info CallInfo, r Request) (result *Result) {
	defer func() {
		if fault := recover(); fault != nil {
			result = ended(HostError, &HostFault{fmt.Errorf("panic: %v\n%s", fault, debug.Stack())})
		}
	}()
	t, ok := p.Tool(r.Tool)
	if !ok {
		return ended(Refused, fmt.Errorf("%q: %w", r.Tool, ErrNoTool))
	}
	request, err := request(info, r)
	if err != nil {
		return ended(Refused, err)
	}
	ctx, done, err := p.engine.running.begin(ctx)
	if err != nil {
		return ended(Refused, err)
	}
	defer done()
	stores, err := p.volumes.open(&p.engine.folders)
	if err != nil {
		return ended(HostError, &HostFault{err})
	}
	ctx, cancel := context.WithTimeout(ctx, p.source.Manifest.Limits.Timeout)
	defer cancel()
	for run := 0; ; run++ {
		c := p.newCall(info, t, stores, r.DryRun)
		result = c.run(ctx, request)
		if result.Outcome != Conflict || run == maxReruns {
			return result
		}
	}
}

func request(info CallInfo, r Request) ([]byte, error) {
	arguments := r.Arguments
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
		return nil, ErrArguments
	}
	return newDelivery(r.Tool, info.ID, arguments)
}

// ended returns the result of a call that never reached its tool.
func ended(o Outcome, err error) *Result {
	return &Result{Outcome: o, Err: err, Effects: []capabilities.Effect{}, Denials: []capabilities.Denial{}}
}

// call is one run of one call: its transaction, its record and its guest.
type call struct {
	pkg     *Package
	tool    *Tool
	dryRun  bool
	ledger  *capabilities.Ledger
	tx      *tx.Tx
	scratch *volume.Overlay
	mounts  []*files.Volume
	clock   callClock
	stdout  cappedWriter
	stderr  cappedBuffer
}

func (p *Package) newCall(info CallInfo, t *Tool, stores []tx.Volume, dryRun bool) *call {
	l := p.source.Manifest.Limits
	c := &call{pkg: p, tool: t, dryRun: dryRun, clock: callClock{time.Now()}}
	c.ledger = capabilities.NewLedger(t.Grant, p.engine.observer.notify(info))
	c.tx = tx.Begin(stores, volume.Options{
		Budget: &volume.Budget{Bytes: l.Writes, Files: l.Files},
		Now:    c.clock.now,
	})
	for _, s := range stores {
		c.mounts = append(c.mounts, files.New(s.Name, s.Path, c.tx.Overlay(s.Name), c.ledger))
	}
	var scratch *files.Volume
	scratch, c.scratch = newScratch(c.clock, c.ledger)
	c.mounts = append(c.mounts, scratch)
	c.stdout.limit, c.stderr.limit = int(l.Output), int(l.Output)
	return c
}

// notify returns the observer's functions bound to one call.
func (o Observer) notify(info CallInfo) capabilities.Notify {
	var n capabilities.Notify
	if o.Violation != nil {
		n.Violation = func(v capabilities.Violation) { o.Violation(info, v) }
	}
	if o.Denial != nil {
		n.Denial = func(d capabilities.Denial) { o.Denial(info, d) }
	}
	return n
}

// run takes the call from its guest to its commit.
func (c *call) run(ctx context.Context, request []byte) *Result {
	r := c.guest(ctx, request)
	r.Effects = c.tx.Effects()
	if r.Outcome == OK {
		c.commit(ctx, r)
	}
	if err := errors.Join(c.tx.Rollback(), c.scratch.Close()); err != nil && r.Err == nil {
		r.Err = err
	}
	r.All, r.Denials, r.Stderr = c.ledger.Violations(), c.ledger.Denials(), c.stderr.b
	if len(r.All) > 0 {
		r.Violation = &r.All[0]
	}
	return r
}

// guest runs the guest on an instance of its own and classifies how it ended.
func (c *call) guest(ctx context.Context, request []byte) *Result {
	process := c.process(request)
	defer process.Close()
	ready := c.pkg.sealed(&c.stderr)
	defer ready.Close()
	i, err := c.pkg.instances.Get(ctx, ready)
	defer c.pkg.instances.Put(context.WithoutCancel(ctx), i, Discard)
	if err != nil {
		return c.classify(ctx, i, ready, nil, err)
	}
	i.slot.Store(process)
	answer, err := c.pkg.invoke(ctx, i, request, &c.stdout.Buffer)
	return c.classify(ctx, i, process, answer, err)
}

func (c *call) process(request []byte) *wasi.Process {
	o := wasi.Options{
		Args:      []string{c.pkg.name},
		Stdin:     bytes.NewReader(nil),
		Stdout:    &c.stdout,
		Stderr:    &c.stderr,
		Volumes:   c.mounts,
		Random:    newRandom(),
		Now:       c.clock.now,
		Monotonic: c.clock.monotonic,
		Ledger:    c.ledger,
	}
	if c.pkg.source.Manifest.ABI == tool.Command {
		o.Stdin = bytes.NewReader(request)
	}
	return wasi.NewProcess(o)
}

// commit prepares what the call did and, unless it is a dry run, applies it.
// Once prepared it cannot be cancelled.
func (c *call) commit(ctx context.Context, r *Result) {
	prepared, err := c.tx.Prepare(ctx)
	if err == nil && !c.dryRun {
		err = c.tx.Commit(context.WithoutCancel(ctx), prepared)
		r.Committed = err == nil
	}
	var limit *volume.LimitError
	var violation *capabilities.Violation
	switch {
	case err == nil:
	case errors.As(err, &violation):
		r.Outcome, r.Err = Violation, c.ledger.Violate(*violation)
	case errors.As(err, &limit):
		r.Outcome, r.Err = Limit, &LimitError{Limit: limit.Resource}
	case errors.Is(err, volume.ErrConflict):
		r.Outcome, r.Err = Conflict, err
	case ctx.Err() != nil:
		r.Outcome, r.Err = Timeout, ctx.Err()
	default:
		r.Outcome, r.Err = HostError, &HostFault{err}
	}
}
