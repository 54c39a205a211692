package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Explain returns what the client is told about a call that did not end well:
// one text, which holds nothing that the guest wrote or named, no host path and
// no secret. What the guest touched is in the call's record and in _meta.
func Explain(tool string, r *Result) Output {
	return text(true, explanation(tool, r))
}

func explanation(tool string, r *Result) string {
	switch r.Outcome {
	case Violation:
		if r.Reported {
			return fmt.Sprintf("%s broke its claim, in report mode: %s. %s", tool, deed(r.Violation), undone(r.Effects))
		}
		return fmt.Sprintf("%s was stopped: %s. %s Retrying will not help.", tool, deed(r.Violation), undone(r.Effects))
	case Timeout:
		return fmt.Sprintf("%s was stopped: %s. %s", tool, interruption(r.Err), notSaved(r.Effects))
	case Limit:
		return fmt.Sprintf("%s was stopped: %s. %s", tool, limitReason(r.Err), notSaved(r.Effects))
	case Conflict:
		return fmt.Sprintf("%s was not carried out: what it read was changed by somebody else meanwhile. Nothing was saved. It can be tried again.", tool)
	case Refused:
		return fmt.Sprintf("%s was not called: %s.", tool, refusal(r.Err))
	case HostError:
		return fmt.Sprintf("%s was not carried out: a fault of the host, recorded as call %s. %s", tool, r.CallID, leftByFault(r.Err))
	case ToolError:
		return fmt.Sprintf("%s did not end well: %s.", tool, toolFault(r.Err))
	case OK:
	}
	return fmt.Sprintf("%s did not end well.", tool)
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

// deed says which claim was broken, by what, and when it was seen.
func deed(v *capabilities.Violation) string {
	if v == nil {
		return "it broke what it declares"
	}
	did := "attempted "
	switch v.Phase {
	case capabilities.PhaseOperation:
	case capabilities.PhaseCommit:
		did = "would have left the effect of "
	case capabilities.PhaseReplay:
		did = "did something further when it was run a second time: "
	}
	return fmt.Sprintf("it declares %s but %s%s", declared(v.Hint), did, v.Operation)
}

// undone says what became of what a stopped call did: all is undone but what
// had left the host at once.
func undone(effects []capabilities.Effect) string {
	sent := 0
	for _, e := range effects {
		if e.Verb == capabilities.Send && e.Kind == capabilities.KindHTTP {
			sent++
		}
	}
	if sent > 0 {
		return fmt.Sprintf("HTTP requests already sent: %d; they cannot be undone. Everything else that this call did was undone.", sent)
	}
	return "Everything that this call did was undone."
}

// leftByFault says what may be left of a call that a fault of the host ended.
func leftByFault(err error) string {
	switch {
	case errors.Is(err, tx.ErrPartial):
		return "A part of what it changed was saved."
	case errors.Is(err, volume.ErrTorn), errors.Is(err, errPanic):
		return "It is not known what of it was saved."
	}
	return nothingSaved
}

const nothingSaved = "Nothing was saved."

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

func interruption(err error) string {
	if t, ok := errors.AsType[*TimeoutError](err); ok {
		return fmt.Sprintf("it ran out of time, which is limited to %s", t.Limit)
	}
	if errors.Is(err, ErrClosed) {
		return "the host is shutting down"
	}
	if errors.Is(err, context.Canceled) {
		return "the caller cancelled it"
	}
	return "it ran out of time"
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
	case errors.Is(err, ErrClosed):
		return "the host is shutting down"
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
