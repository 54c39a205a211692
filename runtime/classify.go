package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// classify turns the end of a guest into an outcome. What the host recorded
// comes before what the guest made of it: a violation stands whatever the
// guest answered.
func (c *call) classify(ctx context.Context, i *instance, process *wasi.Process, answer []byte, err error) *Result {
	stop := process.Stop()
	if stop == nil {
		stop = err
	}
	r := ended(OK, nil)
	var exit *wasi.ExitError
	command := c.pkg.source.Manifest.ABI == tool.Command
	switch {
	case len(c.ledger.Violations()) > 0 || errors.Is(stop, capabilities.ErrViolation):
		r.Outcome, r.Err = Violation, stop
	case hostFault(stop) != nil:
		r.Outcome, r.Err = HostError, hostFault(stop)
	case errors.Is(stop, volume.ErrConflict):
		r.Outcome, r.Err = Conflict, stop
	case asLimit(stop) != nil:
		r.Outcome, r.Err = Limit, asLimit(stop)
	case ctx.Err() != nil:
		r.Outcome, r.Err = Timeout, context.Cause(ctx)
	case stop == nil, command && errors.As(stop, &exit) && exit.Code == 0:
		c.read(r, answer)
	case i.memory.refused:
		r.Outcome, r.Err = Limit, &LimitError{Limit: "memory", Err: stop}
	case errors.As(stop, &exit):
		r.Outcome, r.Err = ToolError, &ExitError{exit.Code}
		if command && c.stdout.Len() > 0 {
			r.Output = text(true, c.stdout.String())
		}
	case errors.Is(stop, errAnswer):
		r.Outcome, r.Err = ToolError, stop
	default:
		r.Outcome, r.Err = ToolError, &TrapError{stop}
	}
	return r
}

// read takes the guest's answer into the result.
func (c *call) read(r *Result, answer []byte) {
	if answer == nil {
		answer = c.stdout.Bytes()
	}
	out, dropped, err := parseOutput(answer)
	r.DroppedMeta = dropped
	switch {
	case err != nil:
		r.Outcome, r.Err = ToolError, errors.Join(errAnswer, err)
	case out.IsError:
		r.Outcome, r.Output = ToolError, out
	default:
		r.Output = out
	}
}

// asLimit returns the limit that the error stands for, or nil.
func asLimit(err error) error {
	var writes *volume.LimitError
	var output *wasi.OutputLimitError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &writes):
		return &LimitError{Limit: writes.Resource}
	case errors.As(err, &output):
		return &LimitError{Limit: "output"}
	case stackOverflow(err):
		return &LimitError{Limit: "stack", Err: err}
	}
	return nil
}

// stackOverflow reports whether the engine stopped the guest for its stack.
// wazero keeps the sentinel in an internal package, so the first line of the
// text is all there is; a test holds it against the pinned version.
func stackOverflow(err error) bool {
	if err == nil {
		return false
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(line, "wasm error: ") == "stack overflow"
}

// hostFault returns the error as a fault of the host where a host function
// crashed: the engine hands on a Go run-time error.
func hostFault(err error) error {
	var crash goruntime.Error
	if errors.As(err, &crash) {
		return &HostFault{err}
	}
	return nil
}
