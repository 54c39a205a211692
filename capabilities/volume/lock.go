package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	// lockWait bounds how long a change waits for others: programs outside the
	// daemon may hold the folder's lock.
	lockWait = 10 * time.Second
	lockPoll = 2 * time.Millisecond
)

// lock makes Check and Apply exclusive: first against those of this HostDir,
// then, through the folder's own lock, against those of others on the same
// folder and of other processes. Nothing else is locked while it is held; a
// caller with several volumes locks one at a time. It returns the context's
// error, or EAGAIN when the lock cannot be had.
func (h *HostDir) lock(ctx context.Context) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	select {
	case h.busy <- struct{}{}:
	case <-wait.Done():
		return nil, lockError(ctx)
	}
	dir, err := h.root.Open(".")
	if err != nil {
		<-h.busy
		return nil, named(err)
	}
	unlock = func() {
		_ = dir.Close() // it was only held
		<-h.busy
	}
	for !tryLock(dir) {
		select {
		case <-wait.Done():
			unlock()
			return nil, lockError(ctx)
		case <-time.After(lockPoll):
		}
	}
	return unlock, nil
}

func lockError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("volume lock: %w", capabilities.EAGAIN)
}
