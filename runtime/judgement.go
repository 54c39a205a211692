package runtime

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/undo"
)

// judgement holds what a call would leave against its tool's claim.
type judgement struct {
	call     *call
	result   *Result
	prepared *tx.Prepared
	view     tx.View
	record   *undo.Record // of what undoing takes, once it is built
	looked   bool         // the call was run a third time
}

// claim is what is held against the call.
func (j *judgement) claim() capabilities.Effective { return j.call.tool.Effective }

// effects shows what the call would leave. A read-only tool leaves nothing: it
// would have been stopped, but in report mode.
func (j *judgement) effects(_ context.Context, p *tx.Prepared, v tx.View) error {
	j.prepared, j.view = p, v
	j.result.Effects = shown(p.Effects)
	return nil
}

// additive refuses what loses something that was there, where the tool claims
// that nothing is (destructiveHint: false).
func (j *judgement) additive(ctx context.Context, p *tx.Prepared, v tx.View) error {
	held := !j.claim().ReadOnly && !j.claim().Destructive
	if p.Empty() || !held && !j.call.observe {
		return nil
	}
	report, err := additive.Judge(ctx, j.trees(), j.call.pkg.rules)
	if err != nil {
		return err
	}
	reword(p.Effects, report)
	j.result.Effects = shown(p.Effects)
	loss := j.loss(report)
	j.result.Observed.Lost = loss
	if loss == nil || !held {
		return nil
	}
	if accepted, why, err := j.recoverable(ctx); err != nil || accepted {
		return err
	} else if why != "" {
		loss.Hint = strings.TrimSpace(sentence(loss.Hint) + " " + why)
	}
	return j.broken(ctx, capabilities.Violation{
		Hint: capabilities.DestructiveHint, Operation: capabilities.OpCommit, Object: loss.Object,
		Phase: capabilities.PhaseCommit, Detail: strings.TrimSpace(loss.Why + ". " + sentence(loss.Hint)),
	})
}

// sentence returns a text with a capital letter and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// broken records a violation and, unless the tool is only tried out, ends the
// call with it. Where others changed meanwhile what the call had looked at, it is
// their doing, maybe: the call is run again.
func (j *judgement) broken(ctx context.Context, v capabilities.Violation) error {
	if err := j.call.tx.Current(ctx, j.prepared); err != nil {
		return err
	}
	err := j.call.execution.ledger.Violate(v)
	if j.call.execution.ledger.Grant().Mode == capabilities.Report {
		return nil
	}
	return err
}

// trees are the volumes before and after the call.
func (j *judgement) trees() []additive.Tree {
	var list []additive.Tree
	for _, v := range j.call.world.volumes {
		if c := j.prepared.Changes[v.Name]; c != nil && !c.Empty() {
			list = append(list, additive.Tree{
				Path: v.Path, Base: j.view.Base(v.Name), Result: j.view.Result(v.Name), Steps: c.Steps,
			})
		}
	}
	return list
}

// loss is the first thing lost in volumes, else in keys.
func (j *judgement) loss(report *additive.Report) *additive.Loss {
	if l := report.Loss(); l != nil {
		return l
	}
	if lost := j.call.keys.Lost(); len(lost) > 0 {
		return &additive.Loss{Object: lost[0].Object, Why: "the key was there with another value"}
	}
	return nil
}

// recoverable reports whether a loss is accepted because its undo is guaranteed.
func (j *judgement) recoverable(ctx context.Context) (accepted bool, why string, err error) {
	keep := j.call.pkg.recoverable
	if keep == 0 || j.call.world.store == nil {
		return false, "", nil
	}
	record, err := j.undoRecord(ctx)
	if err != nil {
		return false, "", err
	}
	if !record.Complete() {
		return false, fmt.Sprintf("The undo of %s cannot be guaranteed.", lostOf(record)), nil
	}
	record.HoldUntil = j.call.report.info.Start.Add(keep).UTC()
	return true, "", nil
}

func lostOf(r *undo.Record) string {
	if len(r.Lost) == 0 {
		return "all of it"
	}
	return fmt.Sprintf("a part of it (%s)", r.Lost[0].Why)
}

// reword says of changed files what was done to them: appended, inserted.
func reword(effects []capabilities.Effect, report *additive.Report) {
	verbs := report.Verbs()
	for i, e := range effects {
		if e.Kind != capabilities.KindFile || e.Verb != capabilities.Overwrite && e.Verb != capabilities.Append {
			continue
		}
		if v, ok := verbs[e.Object]; ok {
			effects[i].Verb = v
		}
	}
}

// replay refuses what would do something further when it is run again, where
// the tool claims that nothing is (idempotentHint: true).
func (j *judgement) replay(ctx context.Context, p *tx.Prepared, _ tx.View) error {
	c := j.call
	held := !j.claim().ReadOnly && j.claim().Idempotent && c.pkg.replays(c.tool.Definition.Name)
	if j.claim().ReadOnly && !c.observe || !held && !c.observe {
		return nil
	}
	look := c.observe || c.execution.ledger.Grant().Mode == capabilities.Report || c.pkg.firstLook(c.tool.Definition.Name)
	found, err := c.replay(ctx, look)
	if err != nil {
		return err
	}
	j.looked = look
	c.report.replayed(found.verdict)
	j.result.Replay, j.result.Observed.Further = found.verdict, found.further
	if !held {
		return nil
	}
	switch found.verdict {
	case Further:
		return j.further(ctx, found)
	case Inconclusive:
		return &LimitError{Limit: "second run's", Err: errInconclusive}
	case NotReplayed, Idempotent, TimeDependent:
	}
	return nil
}

// further records how a second run went on.
func (j *judgement) further(ctx context.Context, found replayed) error {
	var first error
	for _, v := range found.broken {
		v.Phase = capabilities.PhaseReplay
		if err := j.broken(ctx, v); first == nil {
			first = err
		}
	}
	if e := found.further; e != nil {
		return j.broken(ctx, capabilities.Violation{
			Hint: capabilities.IdempotentHint, Operation: capabilities.OpReplay, Object: e.Object, Phase: capabilities.PhaseReplay,
			Detail: "run again with the same arguments, it would " + e.Verb.String() + " this once more.",
		})
	}
	return first
}

// place finds the volume of a guest path, and the path in it.
func (c *call) place(object string) (name, in string, ok bool) {
	for _, v := range c.world.volumes {
		root := strings.TrimSuffix(v.Path, "/") + "/"
		if rest, ok := strings.CutPrefix(object, root); ok {
			return v.Name, path.Clean(rest), true
		}
	}
	return "", "", false
}
