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

// Lock keeps changes through this HostDir out and, through the folder's own
// lock, those of others on the same folder and of other processes. Where the
// file system has no locks for folders, only the former. It returns the
// context's error, or EAGAIN when the lock cannot be had within 10 seconds.
func (h *HostDir) Lock(ctx context.Context) (Locked, error) { return h.lock(ctx) }

func (h *HostDir) lock(ctx context.Context) (*lockedDir, error) {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	select {
	case h.busy <- struct{}{}:
	case <-wait.Done():
		return nil, lockError(ctx)
	}
	l, err := h.lockFolder(ctx, wait)
	if err != nil {
		<-h.busy
		return nil, err
	}
	return l, nil
}

func (h *HostDir) lockFolder(ctx, wait context.Context) (*lockedDir, error) {
	dir, err := h.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("volume lock: %w", named(err))
	}
	for {
		state, err := tryLock(dir)
		if err == nil && state != lockedByOther {
			return &lockedDir{host: h, dir: dir, alone: state == locked}, nil
		}
		if err == nil {
			select {
			case <-time.After(lockPoll):
				continue
			case <-wait.Done():
				err = lockError(ctx)
			}
		} else {
			err = fmt.Errorf("volume lock: %w", named(err))
		}
		_ = dir.Close() // it was only held
		return nil, err
	}
}

func lockError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("volume lock: %w", capabilities.EAGAIN)
}

// lockedDir is a HostDir that is locked.
type lockedDir struct {
	host    *HostDir
	dir     *os.File // holds the lock
	alone   bool     // other processes are kept out too
	checked *Change
}

func (l *lockedDir) Unlock() {
	_ = l.dir.Close() // it was only held
	<-l.host.busy
}
