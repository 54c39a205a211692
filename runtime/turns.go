package runtime

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// urgentRun is the first run of a call, from 0, that keeps others from
	// committing: those before it met a conflict.
	urgentRun = 2
	// urgentFor is how long it keeps them at most.
	urgentFor = time.Second
	// turnStripes bounds how many principals of a package do not wait for each other.
	turnStripes = 64
	everybody   = 1 << 30
)

// turns lets a call that met conflicts again and again run while no other call on
// the same data, of the same package in this process, commits: else the fast ones
// would starve the slow ones. It is about who waits for whom only; what a commit
// rests on is checked as always.
type turns [turnStripes]*semaphore.Weighted

func newTurns() *turns {
	var t turns
	for i := range t {
		t[i] = semaphore.NewWeighted(everybody)
	}
	return &t
}

// of returns the turns on what calls of a principal share: with all principals
// where it is a folder.
func (t *turns) of(principal string, opened []*folder) turn {
	for _, d := range opened {
		if d != nil {
			return turn{t[0]}
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(principal)) // it has no errors
	return turn{t[h.Sum32()%turnStripes]}
}

type turn struct{ s *semaphore.Weighted }

// urgent waits until nobody commits, and keeps others from it until it is
// released or its time is over. It returns the context's cause.
func (t turn) urgent(ctx context.Context) (release func(), err error) {
	if t.s.Acquire(ctx, everybody) != nil {
		return nil, context.Cause(ctx)
	}
	once := sync.OnceFunc(func() { t.s.Release(everybody) })
	timer := time.AfterFunc(urgentFor, once)
	return func() {
		timer.Stop()
		once()
	}, nil
}

// commit waits until no urgent run is in the way. It returns the context's cause.
func (t turn) commit(ctx context.Context) (release func(), err error) {
	if t.s.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { t.s.Release(1) }, nil
}
