package runtime

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// maxReruns is how often a call that met a conflict is run again.
const maxReruns = 3

// Call runs one call and returns what it came to; never nil. It waits for
// others where too many run; the tool's time limit begins after that. ctx
// cancels the call until it is prepared. A call whose outcome is not OK left
// nothing, but for the faults of the host whose error says so ([tx.ErrPartial],
// [volume.ErrTorn]).
func (p *Package) Call(ctx context.Context, r Request) *Result {
	if r.Principal == "" {
		r.Principal = LocalPrincipal
	}
	// It has ended when it is reported, not before.
	ctx, done, closed := p.begin(ctx)
	if closed == nil {
		defer done()
	}
	w := &reporter{observer: p.engine.observer, live: &p.engine.live, info: CallInfo{
		ID: crand.Text(), Principal: r.Principal, Package: p.name, Tool: r.Tool, Start: time.Now(), Trace: r.Trace,
	}}
	w.start()
	result := p.judged(ctx, w, r, closed)
	result.CallID = w.info.ID
	result.Duration = time.Since(w.info.Start)
	p.answer(r.Tool, result)
	result.also(w.take())
	w.end(result)
	result.also(w.take())
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

// judged checks the request, runs it unless it came too late, and turns a fault of
// the host into a result: one call must not take the others down.
func (p *Package) judged(ctx context.Context, w *reporter, r Request, closed error) (result *Result) {
	defer func() {
		if fault := recover(); fault != nil {
			result = ended(HostError, &HostFault{fmt.Errorf("%w: %v\n%s", errPanic, fault, debug.Stack())})
		}
	}()
	if w.fault != nil {
		return ended(HostError, w.take()) // it is not on record
	}
	t, request, err := p.accept(w.info, r)
	if err != nil {
		return ended(Refused, err)
	}
	if closed != nil {
		return ended(Refused, closed)
	}
	began := time.Now()
	leave, err := p.admit(ctx, r.Principal)
	waited := time.Since(began)
	if err != nil {
		result = unadmitted(err)
	} else {
		defer leave()
		result = p.runs(ctx, w, t, request, r)
	}
	result.Waited = waited
	return result
}

// accept checks a request without running anything, and returns its tool with
// what the guest will be handed.
func (p *Package) accept(info CallInfo, r Request) (*Tool, []byte, error) {
	t, ok := p.Tool(r.Tool)
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("%q: %w", r.Tool, ErrNoTool)
	case !tool.ValidPackageName(r.Principal):
		return nil, nil, ErrPrincipal
	}
	if missing := lacking(t.Definition.ClientCapabilities, r.ClientCapabilities); len(missing) > 0 {
		return nil, nil, &CapabilityError{missing}
	}
	arguments, err := t.Schemas.Arguments(bytes.TrimSpace(r.Arguments))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrArguments, err)
	}
	request, err := newDelivery(r.Tool, info.ID, arguments)
	return t, request, err
}

// lacking returns what is required and not declared.
func lacking(required, declared []string) []string {
	var missing []string
	for _, name := range required {
		if !slices.Contains(declared, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// runs runs an admitted call, again where it met a conflict.
func (p *Package) runs(ctx context.Context, w *reporter, t *Tool, request []byte, r Request) (result *Result) {
	opened, release, err := p.volumes.open(w.info.Principal)
	if err != nil {
		return ended(HostError, &HostFault{err})
	}
	defer func() { result.also(release()) }()
	limit := p.source.Manifest.Limits.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{limit})
	defer cancel()
	// One ledger and one count of notes for all runs of the call: what was seen
	// once stays seen.
	w.listen(r.Notify)
	defer func() {
		if result != nil {
			result.DroppedNotes = w.notes.Dropped()
		}
	}()
	ledger := capabilities.NewLedger(t.Grant, w.ledger())
	dryRun := r.DryRun || t.Grant.Mode != capabilities.Enforce
	for run := 0; ; run++ {
		began := time.Now()
		result = p.newCall(w, t, ledger, p.volumes.stores(opened), dryRun).run(ctx, request)
		if result.Outcome == Conflict {
			w.conflict()
		}
		if result.Outcome != Conflict || run == maxReruns || ctx.Err() != nil {
			abandoned(opened, w)
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

// ended returns the result of a call that left nothing.
func ended(o Outcome, err error) *Result {
	return &Result{Outcome: o, Err: err, Effects: []capabilities.Effect{}, Denials: []capabilities.Denial{}}
}

// also adds an error to what went wrong.
func (r *Result) also(err error) {
	if err != nil {
		r.Err = errors.Join(r.Err, err)
	}
}

// call is one run of one call: an execution with the streams of its guest.
type call struct {
	*execution
	pkg    *Package
	tool   *Tool
	report *reporter
	dryRun bool
	stdout cappedWriter
	stderr cappedBuffer
}

func (p *Package) newCall(w *reporter, t *Tool, l *capabilities.Ledger, stores []tx.Volume, dryRun bool) *call {
	limits := p.source.Manifest.Limits
	c := &call{execution: newExecution(stores, l, limits), pkg: p, tool: t, report: w, dryRun: dryRun}
	c.stdout.limit, c.stderr.limit = int(limits.Output), int(limits.Output)
	return c
}

// run takes the call from its guest to its commit.
func (c *call) run(ctx context.Context, request []byte) *Result {
	defer c.close()
	r := c.guest(ctx, request)
	r.Effects = shown(c.tx.Effects())
	if r.Outcome == OK {
		c.settle(ctx, r)
	}
	r.also(c.close())
	r.All, r.Denials, r.Stderr = c.ledger.Violations(), c.ledger.Denials(), c.stderr.b
	if len(r.All) > 0 {
		r.Violation = &r.All[0]
	}
	return r
}

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
	case err != nil:
		r.Outcome, r.Err, r.Output = ToolError, err, Output{}
		return
	}
	r.Output.StructuredContent = structured
	if c.report.fault != nil {
		r.Outcome, r.Err = HostError, c.report.take()
		return
	}
	began := time.Now()
	r.Committed, r.Outcome, r.Err = c.commit(ctx, c.dryRun)
	if !c.dryRun {
		c.report.commit(time.Since(began))
	}
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
	began := time.Now()
	i, err := c.pkg.instances.Get(ctx, ready)
	defer func() { c.pkg.instances.Put(context.WithoutCancel(ctx), i, fate) }()
	if err != nil {
		return ended(c.ended(ctx, i, ready, err))
	}
	c.report.acquired(i.method, time.Since(began))
	defer c.report.released()
	i.slot.Store(&served{process, c.report.notes})
	answer, err := c.pkg.invoke(ctx, i, request, &c.stdout)
	r := ended(c.ended(ctx, i, process, err))
	if r.Outcome == OK && err != nil && !c.command() {
		r.Outcome, r.Err = ToolError, &ExitError{} // a reactor has no exit status, so no good one either
	}
	if r.Outcome == OK {
		fate = Reset
		c.read(ctx, r, answer)
	} else if _, exited := errors.AsType[*ExitError](r.Err); exited && len(c.stdout.b) > 0 && c.command() {
		out, err := plainOutput(true, c.stdout.b, c.limits().Output)
		if r.Output = out; err != nil {
			r.Outcome, r.Err = Limit, err
		}
	}
	return r
}

func (c *call) limits() tool.Limits { return c.pkg.source.Manifest.Limits }

func (c *call) command() bool { return c.pkg.source.Manifest.ABI == tool.Command }

func (c *call) streams(request []byte) wasi.Options {
	o := wasi.Options{Args: []string{c.pkg.name}, Env: c.pkg.env, Stdout: &c.stdout, Stderr: &c.stderr}
	if c.command() {
		o.Stdin = bytes.NewReader(request)
	}
	return o
}

// read takes the guest's answer into the result.
func (c *call) read(ctx context.Context, r *Result, answer []byte) {
	out, dropped, err := parseOutput(ctx, answer, c.limits().Output)
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
