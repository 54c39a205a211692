package runtime

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed: the engine was closed.
var ErrClosed = errors.New("engine is closed")

// running counts the calls of an engine, so that closing it can wait for them.
type running struct {
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelCauseFunc

	mu     sync.Mutex // before adding to calls
	closed bool
	calls  sync.WaitGroup
}

func newRunning() *running {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &running{ctx: ctx, cancel: cancel}
}

// begin returns the context of one call, which ends when the engine is closed
// too, and what to do when the call has ended. It returns [ErrClosed] after
// stop.
func (r *running) begin(ctx context.Context) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	r.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(r.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
		r.calls.Done()
	}, nil
}

// stop lets no further call begin, stops those that run and waits for them.
func (r *running) stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel(ErrClosed)
	r.calls.Wait()
}
