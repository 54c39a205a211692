package demo

import (
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// What must not pass for a good end is told, whatever the cases expect.
func TestJudge(t *testing.T) {
	yes, no := true, false
	lie := capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpWrite}
	good := &mcpserver.Reply{CallID: "c"}
	stopped := &mcpserver.Reply{CallID: "c", IsError: true, Violation: &lie}
	for name, c := range map[string]struct {
		honest  *bool
		outcome runtime.Outcome
		left    bool
		reply   *mcpserver.Reply
		ok      bool
	}{
		"honest call":                  {&yes, runtime.OK, true, good, true},
		"honest call stopped":          {&yes, runtime.Violation, false, stopped, false},
		"lie stopped":                  {&no, runtime.Violation, false, stopped, true},
		"lie that leaves something":    {&no, runtime.Violation, true, stopped, false},
		"lie that goes through":        {&no, runtime.OK, false, good, false},
		"lie that the client misses":   {&no, runtime.Violation, false, good, false},
		"escape held":                  {nil, runtime.OK, false, good, true},
		"escape that leaves something": {nil, runtime.OK, true, good, false},
		"answer of another call":       {nil, runtime.OK, false, &mcpserver.Reply{CallID: "d"}, false},
		"error that the client misses": {nil, runtime.ToolError, false, good, false},
		"lie with a hint not on trial": {&no, runtime.Violation, false, &mcpserver.Reply{CallID: "c", IsError: true, Violation: &capabilities.Violation{Hint: capabilities.OpenWorldHint}}, false},
	} {
		gc := guests.Case{Tool: "t", Honest: c.honest, Outcome: string(c.outcome), Hint: "readOnlyHint"}
		r := newResult(gc)
		r.Outcome, r.LeftBehind, r.callID = c.outcome, c.left, "c"
		r.judge(gc)
		r.judgeReply(gc, c.reply, nil)
		if r.OK() != c.ok {
			t.Errorf("%s: ok %t, %v", name, r.OK(), r.wrong)
		}
	}
	r := newResult(guests.Case{})
	r.Outcome = runtime.OK
	if r.judge(guests.Case{Outcome: "limit"}); r.OK() {
		t.Error("an outcome that was not expected passes")
	}
}

// A claim that is broken in another way than the case says, a label that is not
// given, and messages that are not those that the call says it sent, are told.
func TestJudgeSeen(t *testing.T) {
	lost := &capabilities.Violation{Hint: capabilities.DestructiveHint, Operation: capabilities.OpCommit, Object: "/data/a#/0/x", Phase: capabilities.PhaseCommit}
	for name, c := range map[string]struct {
		r  Result
		c  guests.Case
		ok bool
	}{
		"any":                {Result{violation: lost}, guests.Case{}, true},
		"as it says":         {Result{violation: lost}, guests.Case{Phase: "commit", Object: "/data/a#/0"}, true},
		"another phase":      {Result{violation: lost}, guests.Case{Phase: "replay"}, false},
		"another object":     {Result{violation: lost}, guests.Case{Object: "/data/a#/1"}, false},
		"label":              {Result{replay: runtime.TimeDependent}, guests.Case{Label: "time-dependent"}, true},
		"label not given":    {Result{replay: runtime.Idempotent}, guests.Case{Label: "time-dependent"}, false},
		"label not foreseen": {Result{replay: runtime.TimeDependent}, guests.Case{}, false},
	} {
		if c.r.judgeSeen(c.c); c.r.OK() != c.ok {
			t.Errorf("%s: ok %t, %v", name, c.r.OK(), c.r.wrong)
		}
	}
	send := []capabilities.Effect{{Verb: capabilities.Send, Kind: capabilities.KindOutbox}}
	message := []string{"+p/data/a", "+p" + messageTo + "h k"}
	for name, c := range map[string]struct {
		changes   []string
		effects   []capabilities.Effect
		committed bool
		ok        bool
	}{
		"none":                {nil, nil, true, true},
		"queued":              {message, send, true, true},
		"said and not queued": {nil, send, true, false},
		"queued and not said": {message, nil, true, false},
		"of a dropped call":   {message, send, false, false},
		"dropped":             {nil, send, false, true},
	} {
		r := Result{changes: c.changes}
		if r.judgeSent(&runtime.Result{Effects: c.effects, Committed: c.committed}); r.OK() != c.ok {
			t.Errorf("%s: ok %t, %v", name, r.OK(), r.wrong)
		}
	}
}
