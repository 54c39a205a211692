package demo

import (
	"context"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

func newResult(c guests.Case) *Result {
	return &Result{Tool: c.Tool, Hint: c.Hint, Honest: c.Honest, Attempted: c.Attempted}
}

// unloaded returns the results of a package that did not load: each case of it
// ended that way.
func unloaded(pkg string, cases []guests.Case, err error, changes []string) []*Result {
	var rs []*Result
	for _, c := range cases {
		r := newResult(c)
		r.Package, r.Outcome, r.told = pkg, outcomeLoadError, err.Error()
		r.changes, r.LeftBehind = changes, len(changes) > 0
		if r.judge(c); !r.OK() {
			r.wrong = append(r.wrong, r.told)
		}
		rs = append(rs, r)
	}
	return rs
}

// runCase makes the call of one case and judges how it ended.
func (s *stage) runCase(ctx context.Context, client *mcpserver.Client, p *runtime.Package, c guests.Case) (*Result, error) {
	r := newResult(c)
	if c.Tool == "" {
		r.Outcome = runtime.OK
		r.wrong = append(r.wrong, "the package loaded")
		return r, nil
	}
	t, ok := p.Tool(c.Tool)
	if !ok {
		return nil, fmt.Errorf("cases: tool %s: the package has no such tool", c.Tool)
	}
	r.claim = t.Definition.Claim
	before, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	reply, callErr := client.Call(ctx, c.Tool, c.Arguments)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	after, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	result := s.last.take()
	if result == nil {
		return nil, fmt.Errorf("call of %s: %w", c.Tool, callErr)
	}
	r.Outcome, r.callID, r.detail = result.Outcome, result.CallID, detail(result)
	r.violation, r.replay = result.Violation, result.Replay
	r.changes = before.diff(after)
	r.LeftBehind = len(r.changes) > 0
	r.judge(c)
	r.judgeSeen(c)
	r.judgeSent(result)
	r.judgeReply(c, reply, callErr)
	return r, nil
}

// judge holds the outcome and the disk against the case.
func (r *Result) judge(c guests.Case) {
	if r.Outcome != runtime.Outcome(c.Outcome) {
		r.wrong = append(r.wrong, "should end in "+c.Outcome)
	}
	switch {
	case c.Honest == nil:
		if r.LeftBehind {
			r.wrong = append(r.wrong, "should leave nothing behind")
		}
	case *c.Honest:
		if r.Outcome != runtime.OK {
			r.wrong = append(r.wrong, "an honest call should go well")
		}
	default:
		if r.Outcome != runtime.Violation {
			r.wrong = append(r.wrong, "a lie should be stopped")
		}
		if r.LeftBehind {
			r.wrong = append(r.wrong, "should leave nothing behind")
		}
	}
}

// judgeSeen holds what the engine saw against the case: when the claim was broken
// and by what, and what is labelled.
func (r *Result) judgeSeen(c guests.Case) {
	if v := r.violation; v != nil {
		if c.Phase != "" && string(v.Phase) != c.Phase {
			r.wrong = append(r.wrong, fmt.Sprintf("should break its claim in the phase %s, broke it in %s", c.Phase, v.Phase))
		}
		if c.Object != "" && !guests.Within(v.Object, c.Object) {
			r.wrong = append(r.wrong, fmt.Sprintf("should break its claim by %s, broke it by %s", c.Object, v.Object))
		}
	}
	if late := r.replay == runtime.TimeDependent; late != (c.Label == string(runtime.TimeDependent)) {
		r.wrong = append(r.wrong, fmt.Sprintf("should be labelled %q, its second run is %q", c.Label, r.replay))
	}
}

// judgeSent holds the messages that a call says it sent against those that are
// new in the store.
func (r *Result) judgeSent(result *runtime.Result) {
	said, queued := 0, 0
	for _, e := range result.Effects {
		if result.Committed && e.Verb == capabilities.Send {
			said++
		}
	}
	for _, c := range r.changes {
		if isMessage(c) {
			queued++
		}
	}
	if said != queued {
		r.wrong = append(r.wrong, fmt.Sprintf("says that it sent %d messages, queued are %d", said, queued))
	}
}

// judgeReply holds what the client saw against what the engine says.
func (r *Result) judgeReply(c guests.Case, reply *mcpserver.Reply, err error) {
	if err != nil {
		r.told = err.Error()
		if r.Outcome != runtime.Refused {
			r.wrong = append(r.wrong, "client got an error: "+err.Error())
		}
		return
	}
	r.told = reply.Text
	if reply.CallID != r.callID {
		r.wrong = append(r.wrong, "client got the result of another call")
	}
	if reply.IsError != (r.Outcome != runtime.OK) {
		r.wrong = append(r.wrong, fmt.Sprintf("client got isError %t", reply.IsError))
	}
	v := reply.Violation
	if (v != nil) != (r.Outcome == runtime.Violation) {
		r.wrong = append(r.wrong, "client and engine do not agree on the violation")
	} else if v != nil && r.violation != nil && (v.Object != r.violation.Object || v.Phase != r.violation.Phase) {
		r.wrong = append(r.wrong, "client and engine do not agree on what broke the claim")
	} else if v != nil && c.Hint != "" && v.Hint.String() != c.Hint {
		r.wrong = append(r.wrong, fmt.Sprintf("should break %s, broke %s", c.Hint, v.Hint))
	}
}

// detail says what was refused while the call went on, or what it is labelled.
func detail(r *runtime.Result) string {
	switch {
	case r.Violation != nil:
		return ""
	case len(r.Denials) > 0:
		return string(r.Denials[0].Errno)
	case r.Replay == runtime.TimeDependent:
		return string(r.Replay)
	}
	return ""
}
