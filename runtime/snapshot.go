package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// lateSnapshot is the one snapshot of a run of a call. It is taken when something
// of the store is first looked at: a call that looks at nothing costs nothing. It
// remembers that the store did not answer, which a guest may take for an error of
// a file and go on.
type lateSnapshot struct {
	store store.Store
	seat  *seat // of the run's guest, which needs no processor while the store answers; nil: none

	mu    sync.Mutex
	snap  store.Snapshot
	fault error // the first of the store's own
}

// failed returns the store's fault, nil where there was none. That of no store is
// none.
func (l *lateSnapshot) failed() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// tell remembers an error that is neither the end of the call nor a conflict.
func (l *lateSnapshot) tell(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrTooLarge) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		l.fault = err
	}
}

// Get is that of [store.Snapshot].
func (l *lateSnapshot) Get(ctx context.Context, keys ...store.Key) (list []store.Entry, err error) {
	defer func() { l.tell(ctx, err) }()
	defer l.seat.away(ctx)()
	s, err := l.taken(ctx)
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, keys...)
}

// Scan is that of [store.Snapshot].
func (l *lateSnapshot) Scan(ctx context.Context, r store.Range, limit int) (list []store.Entry, err error) {
	defer func() { l.tell(ctx, err) }()
	defer l.seat.away(ctx)()
	s, err := l.taken(ctx)
	if err != nil {
		return nil, err
	}
	return s.Scan(ctx, r, limit)
}

// Blob is that of [store.Blobs].
func (l *lateSnapshot) Blob(ctx context.Context, d store.Digest) (b []byte, err error) {
	defer func() { l.tell(ctx, err) }()
	defer l.seat.away(ctx)()
	return l.store.Blob(ctx, d)
}

// putTime is how long a blob may take to be put: a commit, which has no deadline,
// waits for it.
const putTime = time.Minute

// PutBlob is that of [store.Blobs], and ends.
func (l *lateSnapshot) PutBlob(ctx context.Context, data []byte) (d store.Digest, err error) {
	defer func() { l.tell(ctx, err) }()
	bounded, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	defer l.seat.away(ctx)()
	return l.store.PutBlob(bounded, data)
}

func (l *lateSnapshot) taken(ctx context.Context) (store.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snap != nil {
		return l.snap, nil
	}
	s, err := l.store.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	l.snap = s
	return s, nil
}
