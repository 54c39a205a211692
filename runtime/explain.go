package runtime

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/tx"
)

// explain returns what the client is told about a call that did not end well.
// It holds no text of the guest, no host path and no secret.
func explain(tool string, r *Result) Output {
	switch r.Outcome {
	case Violation:
		return text(true, fmt.Sprintf("%s was stopped: it declares %s but %s. Everything that this call did was undone. Retrying will not help.",
			tool, declared(r.Violation.Hint), deed(r.Violation)))
	case Timeout:
		return text(true, fmt.Sprintf("%s was stopped: it ran out of time. %s", tool, notSaved(r.Effects)))
	case Limit:
		return text(true, fmt.Sprintf("%s was stopped: %s. %s", tool, limitReason(r.Err), notSaved(r.Effects)))
	case Conflict:
		return text(true, fmt.Sprintf("%s was not carried out: what it read was changed by somebody else meanwhile. Nothing was saved. It can be tried again.", tool))
	case Refused:
		return text(true, fmt.Sprintf("%s was not called: %s.", tool, refusal(r.Err)))
	case HostError:
		return text(true, fmt.Sprintf("%s was not carried out: a fault of the host, recorded as call %s. %s", tool, r.CallID, leftByFault(r.Err)))
	case ToolError:
		return text(true, fmt.Sprintf("%s did not end well: %s.", tool, toolFault(r.Err)))
	case OK:
	}
	return Output{}
}

// declared returns the hint with the value that a violation breaks.
func declared(h capabilities.Hint) string {
	switch h {
	case capabilities.ReadOnlyHint, capabilities.IdempotentHint:
		return h.String() + ": true"
	case capabilities.DestructiveHint, capabilities.OpenWorldHint:
		return h.String() + ": false"
	}
	return h.String()
}

// plainObject is what an object must look like to appear in a text that a
// model reads. A guest chooses the names of what it touches: without spaces and
// beyond a length they cannot carry a sentence. Others are in _meta only.
var plainObject = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,128}$`)

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

// leftByFault says what may be left of a call that a fault of the host ended.
func leftByFault(err error) string {
	if errors.Is(err, tx.ErrPartial) {
		return "A part of what it changed was saved."
	}
	return "Nothing was saved."
}

// wrote reports whether the effects hold anything but reads.
func wrote(effects []capabilities.Effect) bool {
	return slices.ContainsFunc(effects, func(e capabilities.Effect) bool { return e.Verb != capabilities.Read })
}

func notSaved(effects []capabilities.Effect) string {
	if wrote(effects) {
		return "The changes that it had made were not saved."
	}
	return "It had changed nothing."
}

func limitReason(err error) string {
	var l *LimitError
	if errors.As(err, &l) {
		return "it reached its " + l.Limit + " limit"
	}
	return "it reached a limit"
}

func refusal(err error) string {
	switch {
	case errors.Is(err, ErrNoTool):
		return ErrNoTool.Error()
	case errors.Is(err, ErrArguments):
		return ErrArguments.Error()
	}
	return "the operator does not allow it"
}

func toolFault(err error) string {
	var exit *ExitError
	var trap *TrapError
	switch {
	case errors.As(err, &exit):
		return exit.Error()
	case errors.As(err, &trap):
		return "it crashed"
	case errors.Is(err, errAnswer):
		return "its answer is not a tool result"
	}
	return "an error of its own"
}
