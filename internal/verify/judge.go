package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// report judges all four hints.
func (j *judge) report() Tool {
	t := Tool{Name: j.tool.Name, Calls: []Called{}}
	for _, x := range j.trials {
		c := Called{ID: x.id, Arguments: x.Arguments, Note: x.Note, Outcome: "not made", Problem: x.problem}
		if x.made != nil {
			c.Outcome = string(x.made.Outcome)
		}
		t.Calls = append(t.Calls, c)
	}
	for h := range capabilities.Hints() {
		t.Hints = append(t.Hints, j.hint(h))
	}
	return t
}

// hint judges one hint: whether a promise was kept, or could have been made.
func (j *judge) hint(h capabilities.Hint) Hint {
	declared, effective := ofClaim(j.tool.Claim, h), ofEffective(j.effective, h)
	r := Hint{Hint: h, Declared: *declared, Effective: effective, Relaxations: []string{}}
	if h == capabilities.DestructiveHint || h == capabilities.IdempotentHint {
		if j.effective.ReadOnly {
			r.Effective = h == capabilities.IdempotentHint
			return j.implied(r)
		}
	}
	for _, t := range j.trials {
		if t.made == nil {
			continue
		}
		if v := violationOf(t.made, h); v != nil {
			r.Verdict, r.Counterexample = Broken, j.counterexample(t, v)
			r.Reason = fmt.Sprintf("%s: %s", t.id, attempt(v.Operation, v.Object))
			r.Calls++
			return r
		}
	}
	if promises(h, effective) {
		return j.kept(r)
	}
	return j.couldPromise(r)
}

// implied is the verdict on a hint that says nothing beside readOnlyHint: true.
func (j *judge) implied(r Hint) Hint {
	ro := j.hint(capabilities.ReadOnlyHint)
	r.Verdict, r.Calls, r.Reason = ro.Verdict, ro.Calls, "follows from readOnlyHint"
	if ro.Verdict == Broken {
		r.Verdict, r.Calls, r.Reason = NotChecked, 0, "says nothing beside readOnlyHint: true"
	}
	return r
}

// kept is the verdict on a promise that no call broke.
func (j *judge) kept(r Hint) Hint {
	needs := map[string]bool{}
	for _, t := range j.trials {
		if !t.says(r.Hint) {
			continue
		}
		r.Calls++
		for line := range strings.SplitSeq(t.needs[r.Hint], "\n") {
			needs[line] = line != ""
		}
		if r.Hint == capabilities.IdempotentHint && t.made.Replay == runtime.TimeDependent {
			r.TimeDependent = true
		}
	}
	for _, line := range j.source.Manifest.Relaxations.Lines() {
		if needs[line] {
			r.Relaxations = append(r.Relaxations, line)
		}
	}
	switch {
	case j.proves(r.Hint):
		r.Verdict, r.Reason = Proved, proofs[r.Hint]
	case r.Calls == 0:
		r.Verdict, r.Reason = NotChecked, j.why(r.Hint)
	default:
		r.Verdict, r.Reason = Observed, fmt.Sprintf("%s in %s", safe[r.Hint], times(r.Calls))
		if r.TimeDependent {
			r.Reason += "; time-dependent: run again 25 hours later, it would"
		}
	}
	return r
}

// couldPromise is the verdict on a hint that promises nothing: whether what was
// seen would have kept the promise.
func (j *judge) couldPromise(r Hint) Hint {
	for _, t := range j.trials {
		if t.says(r.Hint) {
			r.Calls++
		} else if !t.tried(r.Hint) {
			continue
		}
		if did, later := t.against(r.Hint); did != "" {
			r.Verdict, r.Reason, r.TimeDependent = Observed, did+" ("+t.id+")", later
			break
		}
	}
	switch {
	case r.Verdict != "":
	case j.proves(r.Hint):
		r.Verdict, r.Reason = UnderClaimed, "proved "+words[r.Hint]+": "+proofs[r.Hint]
	case r.Calls == 0:
		r.Verdict, r.Reason = NotChecked, j.why(r.Hint)
	default:
		r.Verdict, r.Reason = UnderClaimed, fmt.Sprintf("observed %s in %s", words[r.Hint], times(r.Calls))
	}
	return r
}

// proves reports whether the promise of a hint holds whatever the code does.
func (j *judge) proves(h capabilities.Hint) bool {
	return h == capabilities.ReadOnlyHint && j.proof.ReadOnly || h == capabilities.OpenWorldHint && j.proof.Closed
}

// says reports whether a call tells anything about a hint. What a call that ends
// in an error would have left is never saved, so it is not judged.
func (t *trial) says(h capabilities.Hint) bool {
	if t.made == nil || t.made.Outcome != runtime.OK && t.made.Outcome != runtime.Violation {
		return false
	}
	switch h {
	case capabilities.DestructiveHint, capabilities.IdempotentHint:
		return !inTheAct(t.made)
	case capabilities.ReadOnlyHint, capabilities.OpenWorldHint:
	}
	return true
}

// tried reports whether what a call tried breaks the promise of a hint however
// the call ended.
func (t *trial) tried(h capabilities.Hint) bool {
	return t.made != nil && (h == capabilities.ReadOnlyHint || h == capabilities.OpenWorldHint)
}

// against says what a call did by which the promise of a hint would have been
// broken, without any relaxation; later, where only a run 25 hours later did.
// Empty: nothing.
func (t *trial) against(h capabilities.Hint) (did string, later bool) {
	r := t.strict
	if t.free != nil {
		r = t.free
	}
	return against(r, h)
}

func against(r *runtime.Result, h capabilities.Hint) (did string, later bool) {
	switch h {
	case capabilities.ReadOnlyHint:
		return writes(r), false
	case capabilities.DestructiveHint:
		if l := r.Observed.Lost; l != nil {
			return "would lose something of " + l.Object + ": " + l.Why, false
		}
	case capabilities.IdempotentHint:
		return repeats(r)
	case capabilities.OpenWorldHint:
		return reaches(r), false
	}
	return "", false
}

// writes says what a call changed, or tried to: a denied write would break
// the claim of a read-only tool.
func writes(r *runtime.Result) string {
	for _, e := range r.Effects {
		if e.Verb != capabilities.Read {
			return fmt.Sprintf("does %s %s %s", e.Verb, e.Kind, e.Object)
		}
	}
	for _, d := range r.Denials {
		switch d.Capability {
		case capabilities.CapVolumeWrite, capabilities.CapKV, capabilities.CapSQL, capabilities.CapOutbox:
			if d.Operation != capabilities.OpRead {
				return "tries " + attempt(d.Operation, d.Object)
			}
		case capabilities.CapVolume, capabilities.CapLink, capabilities.CapHTTP, capabilities.CapService,
			capabilities.CapSecret, capabilities.CapEnv, capabilities.CapSocket, capabilities.CapScratch:
		}
	}
	return ""
}

func repeats(r *runtime.Result) (did string, later bool) {
	object := "something"
	if f := r.Observed.Further; f != nil {
		object = fmt.Sprintf("%s %s %s", f.Verb, f.Kind, f.Object)
	}
	switch r.Replay {
	case runtime.Further:
		return "run again, it would " + object, false
	case runtime.TimeDependent:
		return "run again 25 hours later, it would " + object, true
	case runtime.NotReplayed, runtime.Inconclusive:
		return "a second run was not seen to its end", false
	case runtime.Idempotent:
	}
	return "", false
}

// reaches says what a call sent, or tried to.
func reaches(r *runtime.Result) string {
	for _, e := range r.Effects {
		if e.Verb == capabilities.Send || e.Kind == capabilities.KindHTTP {
			return fmt.Sprintf("does %s %s %s", e.Verb, e.Kind, e.Object)
		}
	}
	for _, d := range r.Denials {
		switch d.Capability {
		case capabilities.CapSocket, capabilities.CapHTTP, capabilities.CapOutbox, capabilities.CapService:
			return "tries " + attempt(d.Operation, d.Object)
		case capabilities.CapVolume, capabilities.CapVolumeWrite, capabilities.CapLink, capabilities.CapKV, capabilities.CapSQL,
			capabilities.CapSecret, capabilities.CapEnv, capabilities.CapScratch:
		}
	}
	return ""
}

// why says why no call tells anything about a hint.
func (j *judge) why(h capabilities.Hint) string {
	if len(j.trials) == 0 {
		return "no arguments could be made from the input schema; add a case"
	}
	ends := map[string]int{}
	first := ""
	for _, t := range j.trials {
		end := "not made"
		if t.made != nil {
			end = string(t.made.Outcome)
		}
		ends[end]++
		if first == "" && t.problem != "" {
			first = "; " + t.id + ": " + t.problem
		}
	}
	var list []string
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		list = append(list, fmt.Sprintf("%d %s", ends[end], end))
	}
	what := "no call ended well"
	if slices.ContainsFunc(j.trials, func(t *trial) bool { return t.says(capabilities.ReadOnlyHint) }) {
		what = "every call broke another claim first"
	}
	return fmt.Sprintf("%s: %s%s", what, strings.Join(list, ", "), first)
}

// counterexample is a call that broke a claim, with the command that makes it
// again.
func (j *judge) counterexample(t *trial, v *capabilities.Violation) *Counterexample {
	words := slices.Clone(j.options.Line)
	if j.file != "" {
		words = append(words, "--cases", j.file)
	}
	words = append(words, "--tool", j.tool.Name, "--call", t.id)
	return &Counterexample{
		Call: t.id, Arguments: json.RawMessage(t.Arguments), Operation: v.Operation, Object: v.Object, Phase: v.Phase,
		Detail: v.Detail, Command: shell(words),
	}
}

func violationOf(r *runtime.Result, h capabilities.Hint) *capabilities.Violation {
	for i, v := range r.All {
		if v.Hint == h {
			return &r.All[i]
		}
	}
	return nil
}
