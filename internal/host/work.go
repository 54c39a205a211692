package host

import (
	"context"
	"errors"
	"sync"
	"time"
)

// work is what goes on beside the calls. The zero value does nothing.
type work struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: nothing was begun
	ended  bool               // nothing is begun any more
	group  sync.WaitGroup
}

// begin runs each function until stop.
func (w *work) begin(ctx context.Context, fs ...func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.cancel != nil {
		return
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, f := range fs {
		w.group.Go(func() { f(ctx) })
	}
}

// stop tells what was begun to end.
func (w *work) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.cancel != nil {
		w.cancel()
	}
}

// wait reports whether what was begun has ended before ctx did.
func (w *work) wait(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		w.group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Work delivers messages and does the upkeep of the store, in the background,
// until Close.
func (h *Host) Work(ctx context.Context) { h.work.begin(ctx, h.post.Run, h.maintain) }

// maintain does the upkeep whenever it is due. Another process may be faster.
func (h *Host) maintain(ctx context.Context) {
	for {
		if err := h.Maintain(ctx); err != nil && ctx.Err() == nil {
			h.logger.Warn("upkeep of the store", "error", err)
		}
		select {
		case <-time.After(upkeepEvery):
		case <-ctx.Done():
			return
		}
	}
}

// Maintain removes from the store what nobody needs any more, unless that was
// done lately by this process or another. What is left when ctx ends is removed
// another time.
func (h *Host) Maintain(ctx context.Context) error {
	_, err := h.upkeep.do(ctx)
	return err
}

// deliverTime is how long a process that made one call waits for its messages to
// be delivered, and pruneTime how long it does upkeep.
const (
	deliverTime = 5 * time.Second
	pruneTime   = 2 * time.Second
)

// Finish does, for a process that does not stay, what [Host.Work] does in others:
// it delivers what is due, each message once, and does the upkeep if it is due, both
// for a bounded time. What is not delivered then waits for the next process.
func (h *Host) Finish(ctx context.Context) {
	if err := within(ctx, deliverTime, h.Deliver); err != nil && ctx.Err() == nil {
		h.logger.Warn("messages of the outbox wait for the next process that serves their package", "error", err)
	}
	err := within(ctx, pruneTime, h.Maintain)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		h.logger.Warn("upkeep of the store", "error", err)
	}
}

func within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}
