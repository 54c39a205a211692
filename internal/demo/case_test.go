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
