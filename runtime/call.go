package runtime

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// maxReruns is how often a call that met a conflict is run again.
const maxReruns = 3

// Call runs one call and returns what it came to; never nil. ctx cancels the
// call until it is prepared. A call whose outcome is not OK left nothing, but
// for the faults of the host whose error says so ([tx.ErrPartial],
// [volume.ErrTorn]).
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
	if t, ok := p.Tool(toolName); ok {
		r.Reported = r.Outcome == Violation && t.Grant.Mode == capabilities.Report
	}
	r.Partial = leftByFault(r.Err) != nothingSaved
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
			result = ended(HostError, &HostFault{fmt.Errorf("%w: %v\n%s", errPanic, fault, debug.Stack())})
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
	limit := p.source.Manifest.Limits.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{limit})
	defer cancel()
	// One ledger for all runs of the call: what was seen once stays seen.
	ledger := capabilities.NewLedger(t.Grant, p.engine.observer.notify(info))
	for run := 0; ; run++ {
		began := time.Now()
		result = p.newCall(ledger, stores, r.DryRun || t.Grant.Mode != capabilities.Enforce).run(ctx, request)
		if result.Outcome != Conflict || run == maxReruns || ctx.Err() != nil {
			p.volumes.abandoned(stores, p.engine.observer)
			return result
		}
		pause(ctx, time.Since(began)<<run)
	}
}

// pause waits for a random time up to most, or until ctx ends: calls that met
// in one conflict would meet again.
func pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(mrand.N(most + 1)):
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

// ended returns the result of a call that left nothing.
func ended(o Outcome, err error) *Result {
	return &Result{Outcome: o, Err: err, Effects: []capabilities.Effect{}, Denials: []capabilities.Denial{}}
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

// call is one run of one call: an execution with the streams of its guest.
type call struct {
	*execution
	pkg    *Package
	dryRun bool
	stdout cappedWriter
	stderr cappedBuffer
}

func (p *Package) newCall(l *capabilities.Ledger, stores []tx.Volume, dryRun bool) *call {
	limits := p.source.Manifest.Limits
	c := &call{execution: newExecution(stores, l, limits), pkg: p, dryRun: dryRun}
	c.stdout.limit, c.stderr.limit = int(limits.Output), int(limits.Output)
	return c
}

// run takes the call from its guest to its commit.
func (c *call) run(ctx context.Context, request []byte) *Result {
	defer c.close()
	r := c.guest(ctx, request)
	r.Effects = shown(c.tx.Effects())
	if r.Outcome == OK {
		r.Committed, r.Outcome, r.Err = c.commit(ctx, c.dryRun)
	}
	if err := c.close(); err != nil && r.Err == nil {
		r.Err = err
	}
	r.All, r.Denials, r.Stderr = c.ledger.Violations(), c.ledger.Denials(), c.stderr.b
	if len(r.All) > 0 {
		r.Violation = &r.All[0]
	}
	return r
}

// What a result shows of the effects: the names in them are the guest's to
// choose, and go to the log and to clients.
const (
	maxEffects = 256
	maxObject  = 512 // bytes
)

// shown returns as many effects as a result shows. The last one says how many
// more there are.
func shown(effects []capabilities.Effect) []capabilities.Effect {
	if more := len(effects) - maxEffects; more > 0 {
		// Reads come first: changes are what must not be cut off by them.
		effects = append(effects[:0:0], effects[more+1:]...)
		effects = append(effects, capabilities.Effect{Verb: capabilities.Read, Kind: capabilities.KindFile, Detail: fmt.Sprintf("and %d more before these", more+1)})
	}
	for i, e := range effects {
		if len(e.Object) > maxObject {
			effects[i].Object = strings.ToValidUTF8(e.Object[:maxObject], "") + "…"
		}
	}
	return effects
}

// guest runs the guest on an instance of its own and says how it ended.
func (c *call) guest(ctx context.Context, request []byte) *Result {
	process := c.process(c.streams(request))
	defer process.Close()
	// Start-up code is this call's too: what it tries is in the call's record.
	ready := c.pkg.sealed(&c.stderr, c.ledger)
	defer ready.Close()
	fate := Discard
	i, err := c.pkg.instances.Get(ctx, ready)
	defer func() { c.pkg.instances.Put(context.WithoutCancel(ctx), i, fate) }()
	if err != nil {
		return ended(c.ended(ctx, i, ready, err))
	}
	i.slot.Store(process)
	answer, err := c.pkg.invoke(ctx, i, request, &c.stdout.Buffer)
	r := ended(c.ended(ctx, i, process, err))
	if r.Outcome == OK && err != nil && !c.command() {
		r.Outcome, r.Err = ToolError, &ExitError{} // a reactor has no exit status, so no good one either
	}
	if r.Outcome == OK {
		fate = Reset
		c.read(r, answer)
	} else if _, exited := errors.AsType[*ExitError](r.Err); exited && c.stdout.Len() > 0 && c.command() {
		r.Output = text(true, c.stdout.String())
	}
	return r
}

func (c *call) command() bool { return c.pkg.source.Manifest.ABI == tool.Command }

func (c *call) streams(request []byte) wasi.Options {
	o := wasi.Options{Args: []string{c.pkg.name}, Stdout: &c.stdout, Stderr: &c.stderr}
	if c.command() {
		o.Stdin = bytes.NewReader(request)
	}
	return o
}

// read takes the guest's answer into the result.
func (c *call) read(r *Result, answer []byte) {
	out, dropped, err := parseOutput(answer)
	r.DroppedMeta = dropped
	switch {
	case err != nil:
		r.Outcome, r.Err = ToolError, errors.Join(errAnswer, err)
	case out.IsError:
		r.Outcome, r.Output = ToolError, out
	default:
		r.Output = out
	}
}
