package volume

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	// lockWait bounds how long a change waits for others: programs outside the
	// daemon may hold the folder's lock.
	lockWait = 10 * time.Second
	lockPoll = 2 * time.Millisecond
)

// lockState is the answer to a try to lock a folder.
type lockState uint8

const (
	lockedByOther lockState = iota
	locked
	lockless // the file system has no locks for folders
)

// lock keeps changes through this HostDir out and, through the folder's own
// lock, those of others on the same folder and of other processes. Where the
// file system has no locks for folders, only the former. Holders that share it
// do not keep each other out. It returns the context's error, or EAGAIN when the
// lock cannot be had within 10 seconds.
func (h *HostDir) lock(ctx context.Context, shared bool) (*lockedDir, error) {
	until := time.Now().Add(lockWait)
	if err := h.enter(ctx, until); err != nil {
		return nil, err
	}
	l, err := h.lockFolder(ctx, until, shared)
	if err != nil || shared {
		<-h.turn
	}
	return l, err
}

// enter takes the turn: who waits for the others to leave lets nobody else in.
func (h *HostDir) enter(ctx context.Context, until time.Time) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-wait.Done():
		return lockError(ctx)
	}
}

func (h *HostDir) lockFolder(ctx context.Context, until time.Time, shared bool) (*lockedDir, error) {
	dir, err := h.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("volume lock: %w", named(err))
	}
	l := &lockedDir{host: h, dir: dir, shared: shared}
	done, err := l.try()
	if err == nil && !done {
		err = l.await(ctx, until)
	} else if err != nil {
		err = fmt.Errorf("volume lock: %w", named(err))
	}
	if err != nil {
		_ = dir.Close() // it was only held
		return nil, err
	}
	return l, nil
}

// await tries again and again.
func (l *lockedDir) await(ctx context.Context, until time.Time) error {
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		select {
		case <-time.After(lockPoll):
		case <-wait.Done():
			return lockError(ctx)
		}
		switch done, err := l.try(); {
		case err != nil:
			return fmt.Errorf("volume lock: %w", named(err))
		case done:
			return nil
		}
	}
}

// try tries to lock, first against this process and then against others.
func (l *lockedDir) try() (bool, error) {
	enter, leave := l.host.inside.TryLock, l.host.inside.Unlock
	if l.shared {
		enter, leave = l.host.inside.TryRLock, l.host.inside.RUnlock
	}
	if !enter() {
		return false, nil
	}
	state, err := tryLock(l.dir, l.shared)
	if err != nil || state == lockedByOther {
		leave()
		return false, err
	}
	l.alone = state == locked && !l.shared
	return true, nil
}

func lockError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("volume lock: %w", capabilities.EAGAIN)
}

// lockedDir is a HostDir that is locked.
type lockedDir struct {
	host   *HostDir
	dir    *os.File // holds the lock
	shared bool
	alone  bool // other processes are kept out too
}

func (l *lockedDir) unlock() {
	_ = l.dir.Close() // it was only held
	if l.shared {
		l.host.inside.RUnlock()
		return
	}
	l.host.inside.Unlock()
	<-l.host.turn
}
