package mcpserver

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// plainObject is what an object must look like to appear in a text that a
// model reads. A guest chooses the names of what it touches: without spaces and
// beyond a length they cannot carry a sentence. Others are in _meta only.
var plainObject = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,128}$`)

// Explain returns the one text that a client gets for a call that was stopped:
// a violation, timeout, limit or conflict. It holds nothing that the guest
// wrote but the plain name of what it touched.
func Explain(tool string, r *runtime.Result) string {
	switch r.Outcome {
	case runtime.Violation:
		return explainViolation(tool, r)
	case runtime.Timeout:
		return tool + " ran longer than its time limit and was stopped." + saved(r) + " Try a smaller request."
	case runtime.Limit:
		return tool + " reached " + limit(r) + " of its sandbox and was stopped." + saved(r) + " Try a smaller request."
	case runtime.Conflict:
		return tool + " used data that something else changed while it ran." + saved(r) + " Call it again."
	case runtime.OK, runtime.ToolError, runtime.Refused, runtime.HostError:
	}
	return tool + " did not finish." + saved(r)
}

func saved(r *runtime.Result) string {
	if wrote(r) && !r.Committed {
		return " Nothing that it had written was saved."
	}
	return ""
}

// limit names the limit that the call ran into, where the engine names it.
func limit(r *runtime.Result) string {
	if e, ok := errors.AsType[*runtime.LimitError](r.Err); ok {
		return "the " + e.Limit + " limit"
	}
	return "a limit"
}

func explainViolation(tool string, r *runtime.Result) string {
	undone := "Everything that this call did was undone."
	if n := sent(r); n > 0 {
		undone = fmt.Sprintf("HTTP requests already sent: %d; they cannot be undone. Everything else that this call did was undone.", n)
	}
	v := r.Violation
	if v == nil {
		return fmt.Sprintf("%s was stopped because it broke what it declares. %s Retrying will not help.", tool, undone)
	}
	return fmt.Sprintf("%s was stopped: it declares %s but %s. %s Retrying will not help.",
		tool, declared(v.Hint), deed(v), undone)
}

// declared returns a hint with the value that makes it a promise.
func declared(h capabilities.Hint) string {
	switch h {
	case capabilities.ReadOnlyHint, capabilities.IdempotentHint:
		return h.String() + ": true"
	case capabilities.DestructiveHint, capabilities.OpenWorldHint:
		return h.String() + ": false"
	}
	return h.String()
}

// deed says what broke the claim, and when it was seen.
func deed(v *capabilities.Violation) string {
	object := ""
	if plainObject.MatchString(v.Object) {
		object = " on " + v.Object
	}
	switch v.Phase {
	case capabilities.PhaseOperation:
		return fmt.Sprintf("attempted %s%s", v.Operation, object)
	case capabilities.PhaseCommit:
		return fmt.Sprintf("would have left %s%s", v.Operation, object)
	case capabilities.PhaseReplay:
		return fmt.Sprintf("did something further (%s%s) when run a second time", v.Operation, object)
	}
	return fmt.Sprintf("attempted %s%s", v.Operation, object)
}

// sent counts what cannot be undone, because it left the host at once.
func sent(r *runtime.Result) (n int) {
	for _, e := range r.Effects {
		if e.Verb == capabilities.Send && e.Kind == capabilities.KindHTTP {
			n++
		}
	}
	return n
}
