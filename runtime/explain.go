package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/tool"
)

// Explain returns what the client is told about a call that did not end well:
// one text, which holds nothing that the guest wrote or named, no host path and
// no secret. What the guest touched is in the call's record and in _meta.
func Explain(name string, r *Result) Output {
	return text(true, explanation(name, r))
}

func explanation(name string, r *Result) string {
	switch r.Outcome {
	case Violation:
		if r.Reported {
			return fmt.Sprintf("%s broke its claim, in report mode: %s.%s %s", name, deed(r.Violation), detail(r.Violation), undone(r.Effects))
		}
		return fmt.Sprintf("%s was stopped: %s.%s %s Retrying will not help.", name, deed(r.Violation), detail(r.Violation), undone(r.Effects))
	case Timeout:
		return fmt.Sprintf("%s was stopped: %s. %s", name, interruption(r.Err), notSaved(r.Effects))
	case Limit:
		if b, ok := errors.AsType[*BusyError](r.Err); ok && b.Loading {
			return fmt.Sprintf("%s was not called: its package is still being loaded; try again in %d s.", name, int(b.RetryAfter/time.Second))
		} else if ok {
			return fmt.Sprintf("%s was not called: too many calls are running; try again in %d s.", name, int(b.RetryAfter/time.Second))
		}
		return fmt.Sprintf("%s was stopped: %s. %s", name, limitReason(r.Err), notSaved(r.Effects))
	case Conflict:
		return fmt.Sprintf("%s was not carried out: what it read was changed by somebody else meanwhile. Nothing was saved. It can be tried again.", name)
	case Refused:
		return fmt.Sprintf("%s was not called: %s.", name, refusal(r.Err))
	case HostError:
		return fmt.Sprintf("%s was not carried out: a fault of the host, recorded as call %s. %s", name, r.CallID, leftByFault(r.Err))
	case ToolError:
		return fmt.Sprintf("%s did not end well: %s.", name, toolFault(r.Err))
	case OK:
	}
	return fmt.Sprintf("%s did not end well.", name)
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
	did := "attempted " + string(v.Operation)
	switch v.Phase {
	case capabilities.PhaseOperation:
	case capabilities.PhaseCommit:
		did = "would have left the effect of " + string(v.Operation)
		if v.Operation == capabilities.OpCommit {
			did = "its commit would have lost something that was there"
		}
	case capabilities.PhaseReplay:
		did = "did something further when it was run a second time"
		if v.Operation != capabilities.OpReplay { // it was stopped in the act
			did += ": " + string(v.Operation)
		}
	}
	return fmt.Sprintf("it declares %s but %s", declared(v.Hint), did)
}

// maxDetail bounds the detail of a violation in what the client is told, in bytes.
const maxDetail = 1024

// detail says what is known of a violation besides, in sentences after a space.
func detail(v *capabilities.Violation) string {
	if v == nil || v.Detail == "" {
		return ""
	}
	return " " + strings.ToUpper(v.Detail[:1]) + plain(v.Detail[1:], maxDetail)
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
	case errors.Is(err, volume.ErrTorn), errors.Is(err, errPanic), errors.Is(err, errGivenUp):
		return "It is not known what of it was saved."
	case errors.Is(err, store.ErrUnknown):
		return "It is not known whether it was saved: all of it, or nothing."
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
		return closing(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it ran out of the time that the caller gave it"
	}
	return "the caller cancelled it"
}

func closing(err error) string {
	if errors.Is(err, errPackageClosed) {
		return "its package was unloaded"
	}
	return "the host is shutting down"
}

func limitReason(err error) string {
	var l *LimitError
	if errors.As(err, &l) {
		if l.Limit == fuelLimit {
			return "it reached its fuel limit" + l.allowed() + "; ask it for less, or have limits.fuel raised in its manifest"
		}
		return "it reached its " + l.Limit + " limit" + l.allowed()
	}
	return "it reached a limit"
}

func refusal(err error) string {
	if c, ok := errors.AsType[*CapabilityError](err); ok {
		return "it requires a client that declares " + strings.Join(c.Missing, ", ")
	}
	if l, ok := errors.AsType[*LoadError](err); ok {
		return "its package does not load any more (" + l.Phase + "); the host's log says why"
	}
	if k, ok := errors.AsType[*KeyError](err); ok {
		return "its idempotency key " + k.Problem + "; " + k.Mend
	}
	switch {
	case errors.Is(err, ErrNoTool):
		return ErrNoTool.Error()
	case errors.Is(err, ErrArguments):
		return invalid(err)
	case errors.Is(err, ErrPrincipal):
		return "the caller's name is not valid"
	case errors.Is(err, ErrClosed):
		return closing(err)
	}
	return "the operator does not allow it"
}

// invalid says which argument is wrong and how to mend it. Such text may quote
// what the caller sent.
func invalid(err error) string {
	a, ok := errors.AsType[*tool.ArgumentsError](err)
	if !ok {
		return ErrArguments.Error()
	}
	where := "the arguments"
	if a.Path != "" {
		where = "argument " + plain(a.Path, 256)
	}
	s := where + ": " + plain(a.Problem, 1024)
	if a.Mend != "" {
		s += "; " + plain(a.Mend, 1024)
	}
	return s
}

// plain returns text on one line, without hidden characters, cut to so many
// bytes or little more.
func plain(s string, most int) string {
	var b strings.Builder
	for i, r := range s {
		if i >= most {
			return b.String() + "…"
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
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
	case isOutput(err):
		return "its result does not keep to its own outputSchema"
	}
	return "an error of its own"
}

func isOutput(err error) bool {
	_, ok := errors.AsType[*tool.OutputError](err)
	return ok
}
