package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed: the engine or the package was closed, or is being closed.
var ErrClosed = errors.New("closed")

var (
	errEngineClosed  = fmt.Errorf("engine is %w", ErrClosed)
	errPackageClosed = fmt.Errorf("package is %w", ErrClosed)
)

// RunningError is what was still running when closing had to be over.
type RunningError struct {
	Calls int   // calls, and loads
	Err   error // the cause of the end of the context
}

// Error says how many.
func (e *RunningError) Error() string {
	return fmt.Sprintf("calls that do not end although they were stopped: %d: %v", e.Calls, e.Err)
}

// Unwrap returns the cause.
func (e *RunningError) Unwrap() error { return e.Err }

// running counts the calls of an engine or a package, so that closing it can
// wait for them.
type running struct {
	reason  error           // what calls get that come too late, or are stopped; matches ErrClosed
	open    context.Context // ends when no further call begins
	shut    context.CancelCauseFunc
	drained chan struct{} // closed when it is shut and none runs

	mu    sync.Mutex
	calls map[*runningCall]struct{}
}

// runningCall is a call that has begun and not ended.
type runningCall struct{ stop context.CancelCauseFunc }

func newRunning(reason error) *running {
	r := &running{reason: reason, drained: make(chan struct{}), calls: map[*runningCall]struct{}{}}
	r.open, r.shut = context.WithCancelCause(context.Background())
	return r
}

// begin returns the context of one call, which ends when the calls are stopped
// too, and what to do once when the call has ended. It returns an error that
// matches [ErrClosed] after drain and stop.
func (r *running) begin(ctx context.Context) (context.Context, func(), error) {
	own, stop := context.WithCancelCause(ctx)
	c := &runningCall{stop}
	if err := r.add(c); err != nil {
		stop(nil)
		return ctx, nil, err
	}
	return own, func() {
		stop(nil)
		r.end(c)
	}, nil
}

// add counts a call until its end. A call may be counted at several places.
func (r *running) add(c *runningCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open.Err() != nil {
		return r.reason
	}
	r.calls[c] = struct{}{}
	return nil
}

func (r *running) end(c *runningCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c)
	if len(r.calls) == 0 && r.open.Err() != nil {
		close(r.drained)
	}
}

// waiting returns a context for a call that has begun and not been admitted: it
// ends, too, when no further call may begin.
func (r *running) waiting(ctx context.Context) (context.Context, func()) {
	return endingWith(ctx, r.open)
}

// endingWith returns a context that ends with either, by the cause of which
// ended.
func endingWith(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// closed reports whether no further call may begin.
func (r *running) closed() bool { return r.open.Err() != nil }

// close lets no further call begin.
func (r *running) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open.Err() != nil {
		return
	}
	r.shut(r.reason)
	if len(r.calls) == 0 {
		close(r.drained)
	}
}

// drain lets no further call begin and waits for those that run. It returns the
// cause of ctx when that ends first.
func (r *running) drain(ctx context.Context) error {
	r.close()
	select {
	case <-r.drained:
		return nil
	default:
	}
	select {
	case <-r.drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop lets no further call begin, stops those that run and waits for them. It
// returns a [*RunningError] when ctx ends first.
func (r *running) stop(ctx context.Context) error {
	r.close()
	r.cancel()
	err := r.drain(ctx)
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == 0 {
		return nil // they ended in the last moment
	}
	return &RunningError{Calls: len(r.calls), Err: err}
}

// cancel ends the contexts of the calls that run. They have ended when it
// returns: none of these calls commits what it had not begun to.
func (r *running) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.calls {
		c.stop(r.reason)
	}
}
