package wasi

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// ErrNoProcess stops a guest that calls the host while no call is bound to its
// instance.
var ErrNoProcess = errors.New("instance bound to no call")

// ExitError is the guest's own end: proc_exit. The instance is not closed.
type ExitError struct{ Code uint32 }

// Error returns the exit status in words.
func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// OutputLimitError stops a guest that writes more to standard output than its
// result may be.
type OutputLimitError struct{ Limit int } // bytes

// Error returns the limit in words.
func (e *OutputLimitError) Error() string {
	return fmt.Sprintf("output limit of %d bytes reached", e.Limit)
}

// InterruptError stops a guest that is in the host when its context ends or its
// clock is late, or calls it later. It wraps the cause of that.
type InterruptError struct{ Cause error }

// Error returns the cause in words.
func (e *InterruptError) Error() string { return "interrupted: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *InterruptError) Unwrap() error { return e.Cause }

// stops reports whether an error ends the guest instead of being told to it.
func stops(err error) bool {
	if _, ok := errors.AsType[*capabilities.Violation](err); ok {
		return true
	}
	if _, ok := errors.AsType[*volume.LimitError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*files.SealedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*OutputLimitError](err); ok {
		return true
	}
	return errors.Is(err, volume.ErrConflict)
}

// raise remembers what stops the guest and stops it. It does not return. The
// first stop is the one that is remembered.
func (p *Process) raise(err error) {
	if p.stop == nil {
		p.stop = err
	}
	panic(p.stop)
}

// Enter is what a host function of another interface begins with: a guest that
// was stopped stays stopped, and one that has no time left is stopped. It does
// not return then.
func (p *Process) Enter(ctx context.Context) {
	if p.stop != nil {
		panic(p.stop)
	}
	p.check(ctx)
}

// check stops the guest when it has no time left. What the host does for a guest is
// part of its turn, however little the code weighs that asks for it.
func (p *Process) check(ctx context.Context) {
	if p.processor != nil {
		_ = p.processor.Share(ctx) // its only error is what is looked for next
	}
	if ctx.Err() != nil {
		p.raise(&InterruptError{Cause: context.Cause(ctx)})
	}
	if late := p.clock.Late(); late != nil {
		p.raise(&InterruptError{Cause: late})
	}
}

// result turns an error into the number that the guest gets. It does not
// return for an error that stops the guest.
func (p *Process) result(err error) errno {
	if err == nil {
		return success
	}
	if stops(err) {
		p.raise(err)
	}
	if e, ok := errors.AsType[capabilities.Errno](err); ok {
		return number(e)
	}
	return eIO
}
