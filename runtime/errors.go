package runtime

import (
	"errors"
	"fmt"
)

// Errors of an engine, besides those of the packages it uses.
var (
	// ErrNotSupported: the package asks for something that is not built yet.
	ErrNotSupported = errors.New("not supported yet")
	// ErrNoTool: the package has no tool of that name.
	ErrNoTool = errors.New("no such tool")
	// ErrArguments: the arguments of a call are not a JSON object.
	ErrArguments = errors.New("arguments are not a JSON object")
)

// LoadError says why a package cannot run.
type LoadError struct {
	Package string
	Phase   string // compile, link, start, _initialize, describe, volumes
	Err     error
}

// Error returns one line that names package, phase and reason.
func (e *LoadError) Error() string {
	return fmt.Sprintf("package %s: %s: %v", e.Package, e.Phase, e.Err)
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
	Limit string // memory, stack, output, writes, files, result
	Err   error  // what the guest died of; may be nil
}

// Error names the limit.
func (e *LimitError) Error() string { return e.Limit + " limit reached" }

// Unwrap returns what the guest died of.
func (e *LimitError) Unwrap() error { return e.Err }

// TrapError is a guest that crashed: a WebAssembly trap.
type TrapError struct{ Err error }

// Error names the trap, with the guest's stack.
func (e *TrapError) Error() string { return fmt.Sprintf("trap: %v", e.Err) }

// Unwrap returns the engine's error.
func (e *TrapError) Unwrap() error { return e.Err }
