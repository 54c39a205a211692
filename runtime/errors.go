package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// Errors of an engine, besides those of the packages it uses.
var (
	// ErrNotSupported: the package asks for something that is not built yet.
	ErrNotSupported = tool.ErrNotSupported
	// ErrNoTool: the package has no tool of that name.
	ErrNoTool = errors.New("no such tool")
	// ErrArguments: the arguments of a call do not fit the tool. The error is a
	// [*tool.ArgumentsError], too.
	ErrArguments = errors.New("arguments are not valid")
	// ErrPrincipal: whose call it is is no name.
	ErrPrincipal = errors.New("principal is not a name of up to 64 lower-case letters, digits and hyphens")
)

// CapabilityError is a call whose client does not declare what the tool requires
// of it.
type CapabilityError struct {
	Missing []string // names of [tool.ClientCapabilities], sorted; at least one
}

// Error names the capabilities.
func (e *CapabilityError) Error() string {
	return "client does not declare " + strings.Join(e.Missing, ", ")
}

// errDisturbed: what a call that ended in an error had read has changed since.
var errDisturbed = errors.New("what the call read has changed since")

// errPanic is matched by a fault of the host that was a panic: nobody knows
// how far the call had come.
var errPanic = errors.New("panic")

// survive, deferred, turns a panic into a result: one call must not take the others
// down.
func survive(result **Result) {
	if fault := recover(); fault != nil {
		*result = ended(HostError, &HostFault{fmt.Errorf("%w: %v\n%s", errPanic, fault, debug.Stack())})
	}
}

// LoadError says why a package cannot run.
type LoadError struct {
	Package string
	Phase   string // manifest, binding, volumes, module, link, compile, start, _initialize, warmup, sandboxd_reseed, describe, schemas
	Err     error
	Log     []byte // what start-up code wrote to standard error, cut to the output limit
}

// Error returns one line that names package, phase and reason.
func (e *LoadError) Error() string {
	mend := ""
	if l, ok := errors.AsType[*LimitError](e.Err); ok && l.Limit == fuelLimit {
		mend = "; raise limits.fuel in its manifest"
	}
	return fmt.Sprintf("package %s: %s: %v%s", e.Package, e.Phase, e.Err, mend)
}

// Unwrap returns the reason.
func (e *LoadError) Unwrap() error { return e.Err }

// HostFault is a fault of sandboxd itself during a call. Its detail is for the
// host's log; clients and guests never see it.
type HostFault struct{ Err error }

// Error names the fault.
func (e *HostFault) Error() string { return fmt.Sprintf("host fault: %v", e.Err) }

// Unwrap returns the fault.
func (e *HostFault) Unwrap() error { return e.Err }

// ExitError is a guest's exit status other than 0.
type ExitError struct{ Code uint32 }

// Error names the status.
func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// LimitError is a limit of a call that the guest ran into.
type LimitError struct {
	Limit string // memory, stack, fuel, output, writes, files, paths
	Most  int64  // what the manifest allows, in bytes, or units of fuel; 0: neither, or not known
	Err   error  // what the guest died of; may be nil
}

// fuelLimit is the limit of what a guest runs.
const fuelLimit = "fuel"

// Error names the limit.
func (e *LimitError) Error() string { return e.Limit + " limit" + e.allowed() + " reached" }

// allowed says how much that was, where it is known.
func (e *LimitError) allowed() string {
	if e.Most == 0 {
		return ""
	}
	if e.Limit == fuelLimit {
		return fmt.Sprintf(" of %d", e.Most)
	}
	if e.Most%(1<<20) == 0 {
		return fmt.Sprintf(" of %d MiB", e.Most>>20)
	}
	return fmt.Sprintf(" of %d bytes", e.Most)
}

// Unwrap returns what the guest died of.
func (e *LimitError) Unwrap() error { return e.Err }

// TimeoutError is a call that ran out of its time.
type TimeoutError struct{ Limit time.Duration }

// Error names the limit.
func (e *TimeoutError) Error() string { return fmt.Sprintf("time limit of %s reached", e.Limit) }

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// TrapError is a guest that crashed: a WebAssembly trap.
type TrapError struct{ Err error }

// Error names the trap, with the guest's stack.
func (e *TrapError) Error() string { return fmt.Sprintf("trap: %v", e.Err) }

// Unwrap returns the engine's error.
func (e *TrapError) Unwrap() error { return e.Err }
