package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Options of a run. Package is required.
type Options struct {
	Package *tool.Package
	Folder  string // of the package, as its user names it; default: Package.Dir
	Cases   string // file of cases; default: cases.json or cases.yaml beside the manifest
	// Contents are folders of the host by volume name: each call gets a copy, in the
	// place of what the package's own folder holds. Default: none.
	Contents map[string]string
	// Operator is what the operator gives the package. Its folders, managed volumes,
	// mode, outbox and relaxations have no effect here.
	Operator runtime.Binding
	Tool     string   // the one tool that is verified; default: all
	Call     string   // the one call of each tool that is made; default: all
	Line     []string // words of the command that verifies the package, for the counter-examples
	Cache    string   // folder of compiled modules; empty: none on disk
	Observer runtime.Observer
}

// ErrNoCall: there is no such tool, or no such call.
var ErrNoCall = errors.New("no such call")

// Run verifies a package. What is wrong with its cases or with what its volumes
// begin with is an error, and so is a package that does not load, a
// [*runtime.LoadError].
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	w, err := openWorlds(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.describe(ctx); err != nil {
		return nil, err
	}
	calls, file, err := w.plan()
	if err != nil {
		return nil, err
	}
	m := w.source.Manifest
	r := &Report{
		Package: m.Name, Version: m.Version, Digest: o.Package.Digest, Cases: file,
		Relaxations: append([]string{}, m.Relaxations.Lines()...), Tools: []Tool{},
	}
	var judges []*judge
	for _, d := range m.Tools {
		if o.Tool != "" && d.Name != o.Tool {
			continue
		}
		j := &judge{worlds: w, tool: d, effective: d.Claim.Effective(), proof: Prove(m.Requests), file: file}
		if err := j.try(ctx, calls[d.Name]); err != nil {
			return nil, err
		}
		judges, r.Tools = append(judges, j), append(r.Tools, j.report())
		r.Ran += j.ran()
	}
	if err := w.suggest(ctx, judges, r.Tools); err != nil {
		return nil, err
	}
	r.Honest = r.Broken() == 0
	switch {
	case o.Tool != "" && len(r.Tools) == 0:
		return nil, fmt.Errorf("%w: tool %s: the package has %s", ErrNoCall, o.Tool, strings.Join(toolNames(m.Tools), ", "))
	case o.Call != "" && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return len(t.Calls) > 0 }):
		return nil, fmt.Errorf("%w: %s", ErrNoCall, o.Call)
	}
	return r, nil
}

// judge holds the calls of one tool against its hints.
type judge struct {
	*worlds
	tool      tool.Definition
	effective capabilities.Effective
	proof     Proof
	file      string // of cases
	trials    []*trial
}

// trial is one call with what it was seen to be.
type trial struct {
	*call
	made    *runtime.Result              // under the declared claim, with the relaxations in force that it needs
	strict  *runtime.Result              // likewise, with none in force
	free    *runtime.Result              // under no claim, where the declared one was broken in the act; else nil
	needs   map[capabilities.Hint]string // relaxations, a line each, by the claim that is kept with them
	problem string
}

// unclaimed names the terms under which a tool may do everything.
const unclaimed = "unclaimed"

// try makes the calls.
func (j *judge) try(ctx context.Context, calls []*call) error {
	for _, c := range calls {
		if only := j.options.Call; only != "" && c.id != only {
			continue
		}
		t := &trial{call: c, needs: map[capabilities.Hint]string{}}
		j.trials = append(j.trials, t)
		r, err := j.worlds.try(ctx, c, terms{})
		if b, ok := errors.AsType[*beforeError](err); ok {
			t.problem = b.Error()
			continue
		}
		if err != nil {
			return err
		}
		t.strict, t.made, t.problem = r, r, problem(r)
		if err := j.relax(ctx, t); err != nil {
			return err
		}
		if inTheAct(t.made) {
			if t.free, err = j.worlds.try(ctx, c, terms{claims: map[string]capabilities.Claim{}, named: unclaimed}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ran counts the calls in which the tool's code ran.
func (j *judge) ran() int {
	n := 0
	for _, t := range j.trials {
		if t.made != nil && t.made.Outcome != runtime.Refused && t.made.Outcome != runtime.HostError {
			n++
		}
	}
	return n
}

// inTheAct reports whether a claim was broken by an operation: what the call
// would have left is not judged then.
func inTheAct(r *runtime.Result) bool {
	return slices.ContainsFunc(r.All, func(v capabilities.Violation) bool { return v.Phase == capabilities.PhaseOperation })
}

// problem says why a call says nothing of what a tool does when it does it.
func problem(r *runtime.Result) string {
	const most = 200
	text := ""
	switch r.Outcome {
	case runtime.OK, runtime.Violation:
		return ""
	case runtime.ToolError, runtime.Refused, runtime.Timeout, runtime.Limit, runtime.Conflict, runtime.HostError:
		if r.Err != nil {
			text, _, _ = strings.Cut(r.Err.Error(), "\n")
		} else if len(r.Output.Content) > 0 {
			var c struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(r.Output.Content[0], &c) == nil {
				text = strings.TrimSpace(c.Text)
			}
		}
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
