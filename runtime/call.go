package runtime

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
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
	ctx, running, closed := p.begin(ctx)
	if closed == nil {
		defer p.end(running)
	}
	w := &reporter{observer: p.engine.observer, live: &p.engine.live, info: CallInfo{
		ID: crand.Text(), Principal: r.Principal, Package: p.name, Tool: r.Tool, Start: time.Now(), Trace: r.Trace,
	}}
	w.start()
	result := p.judged(ctx, running, w, r, closed)
	result.CallID = cmp.Or(result.CallID, w.info.ID)
	result.Duration = time.Since(w.info.Start)
	p.answer(r.Tool, result)
	result.also(w.take())
	w.end(result.told(w.info.ID))
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
	if r.Outcome == ToolError && wrote(r.Effects) && !r.Committed {
		r.Output.Content = append(r.Output.Content, textContent("The changes that this call had made were not saved, because it ended in an error."))
	}
}

// judged checks the request, and runs it unless it came too late.
func (p *Package) judged(ctx context.Context, running *runningCall, w *reporter, r Request, closed error) (result *Result) {
	defer survive(&result)
	if w.fault != nil {
		return ended(HostError, w.take()) // it is not on record
	}
	t, arguments, err := p.accept(r)
	if err != nil {
		return ended(Refused, err)
	}
	if closed != nil {
		return ended(Refused, closed)
	}
	began := time.Now()
	admitted, err := p.admit(ctx, r.Principal)
	waited := time.Since(began)
	if err != nil {
		result = unadmitted(err)
	} else {
		defer admitted.leave()
		limit := p.source.Manifest.Limits.Timeout
		timer := time.AfterFunc(limit, func() { running.stop(&TimeoutError{limit}) })
		defer timer.Stop()
		result = p.runs(ctx, w, t, arguments, r)
	}
	result.Waited = waited
	return result
}

// accept checks a request without running anything, and returns its tool with
// the canonical arguments.
func (p *Package) accept(r Request) (*Tool, json.RawMessage, error) {
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
	return t, arguments, nil
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
func (p *Package) runs(ctx context.Context, w *reporter, t *Tool, arguments json.RawMessage, r Request) (result *Result) {
	opened, release, err := p.volumes.open(w.info.Principal)
	if err != nil {
		return ended(HostError, &HostFault{err})
	}
	defer func() { result.also(release()) }()
	// One ledger and one count of notes for all runs of the call: what was seen
	// once stays seen.
	w.listen(r.Notify)
	defer func() {
		if result != nil {
			result.DroppedNotes = w.notes.Dropped()
		}
	}()
	c := &callSpec{
		pkg: p, tool: t, report: w, arguments: arguments, ledger: capabilities.NewLedger(t.Grant, w.ledger()),
		turn: p.turns.of(w.info.Principal, opened), observe: r.Observe, show: r.Show,
		dryRun: r.DryRun || r.Show != nil || t.Grant.Mode != capabilities.Enforce,
	}
	first, leave, err := p.engine.once.enter(ctx, c, r)
	switch {
	case err != nil:
		return unremembered(ctx, err)
	case first != nil:
		return first
	}
	defer leave()
	defer abandoned(opened, w)
	return c.untilSettled(ctx, opened)
}

// callSpec is what all runs of a call share.
type callSpec struct {
	pkg       *Package
	tool      *Tool
	report    *reporter
	arguments json.RawMessage // canonical
	ledger    *capabilities.Ledger
	once      *remembered // what keeps the result under the call's idempotency key; nil: it has none
	turn      turn
	dryRun    bool
	observe   bool
	show      *undo.Show // how much of the differences the result shows; nil: none
}

// untilSettled runs the call until nobody is in its way, at most four times.
func (s *callSpec) untilSettled(ctx context.Context, opened []*folder) *Result {
	request := newDelivery(s.tool.Definition.Name, s.report.info.ID, s.arguments)
	for run := 0; ; run++ {
		if run > 0 && s.once != nil {
			if first, err := s.once.find(ctx); first != nil || err != nil {
				return firstOr(ctx, first, err)
			}
		}
		began := time.Now()
		s.report.notes.Again()
		result := s.runOnce(ctx, opened, request, run >= urgentRun)
		if result.Outcome == Conflict {
			s.report.conflict()
		}
		if result.Outcome != Conflict || run == maxReruns || ctx.Err() != nil {
			return result
		}
		if run+1 < urgentRun {
			pause(ctx, time.Since(began)<<run)
		}
	}
}

// runOnce runs the call; urgently, while no other commits.
func (s *callSpec) runOnce(ctx context.Context, opened []*folder, request []byte, urgently bool) *Result {
	if urgently {
		release, err := s.turn.urgent(ctx)
		if err != nil {
			return ended(Timeout, err)
		}
		defer release()
	}
	c, err := s.newCall(ctx, opened)
	switch {
	case err != nil && ctx.Err() != nil: // while it waited for others
		return ended(Timeout, context.Cause(ctx))
	case err != nil:
		return ended(HostError, &HostFault{err})
	}
	c.urgent = urgently
	return c.run(ctx, request)
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
	*callSpec
	world   world
	urgent  bool  // no other call is let in between
	fuel    int64 // that the guest spent
	startUp startUp
	stdout  cappedWriter
	stderr  cappedBuffer
}

func (s *callSpec) newCall(ctx context.Context, opened []*folder) (*call, error) {
	w, err := s.pkg.world(ctx, s, opened)
	if err != nil {
		return nil, err
	}
	return s.on(w, newExecution(ctx, w, s.ledger, s.pkg.source.Manifest.Limits)), nil
}

func (s *callSpec) on(w world, x *execution) *call {
	c := &call{execution: x, callSpec: s, world: w}
	c.stdout.limit, c.stderr.limit = int(x.limits.Output), int(x.limits.Output)
	return c
}

// run takes the call from its guest to its commit.
func (c *call) run(ctx context.Context, request []byte) *Result {
	defer c.close()
	r := c.guest(ctx, request)
	r.Effects = shown(c.tx.Effects())
	switch {
	case r.Outcome == OK, r.Outcome == ToolError && c.commitsErrors(r):
		c.settle(ctx, r)
	case r.Outcome == ToolError && c.disturbed(ctx):
		r = ended(Conflict, errDisturbed)
	}
	r.also(c.close())
	c.witness(r)
	return r
}

// witness fills in what was seen of the guest.
func (c *call) witness(r *Result) {
	r.All, r.Denials, r.Stderr = c.execution.ledger.Violations(), c.execution.ledger.Denials(), c.stderr.b
	if len(r.All) > 0 {
		r.Violation = &r.All[0]
	}
}

// disturbed reports whether others changed meanwhile what the call had looked at.
// An error may come of that: what it saw was no state that ever was.
func (c *call) disturbed(ctx context.Context) bool {
	prepared, err := c.tx.Prepare(ctx)
	return err == nil && isConflict(c.tx.Current(ctx, prepared))
}

// commitsErrors reports whether the operator has what such a call did saved: it
// answered that it did not succeed, and ended by itself.
func (c *call) commitsErrors(r *Result) bool {
	return r.Err == nil && slices.Contains(c.pkg.commitOnError, c.tool.Definition.Name)
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
	} else {
		effects = slices.Clone(effects)
	}
	for i, e := range effects {
		if len(e.Object) > maxObject {
			effects[i].Object = strings.ToValidUTF8(e.Object[:maxObject], "") + "…"
		}
	}
	return effects
}
