package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// ErrBusy is matched by a [*BusyError].
var ErrBusy = errors.New("too many calls")

// BusyError is a call that was not begun because too many others run or wait.
type BusyError struct {
	Scope      string        // "package NAME" or "host": what has too many
	RetryAfter time.Duration // an estimate, in whole seconds
}

// Error names what is busy and when to come again.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: %s; try again in %s", e.Scope, ErrBusy, e.RetryAfter)
}

// Unwrap returns [ErrBusy].
func (e *BusyError) Unwrap() error { return ErrBusy }

// gate admits calls to what they share: so many at once, with so much memory
// together. Others wait, first come first served, so that no call is overtaken
// for ever by smaller ones.
type gate struct {
	scope  string
	limits CallLimits

	mu      sync.Mutex
	running int
	memory  int64
	queue   []*ticket
	mean    time.Duration // how long a call was in lately, a moving average
}

// ticket is a call that waits. Its channel is closed when it is admitted.
type ticket struct {
	memory   int64
	admitted chan struct{}
}

// enter waits until a call that may use so much memory is admitted, and returns
// what to do once when it has ended. It returns a [*BusyError] where too many
// wait already or the call waited too long, and the cause of ctx when that ends
// first.
func (g *gate) enter(ctx context.Context, memory int64) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t, err := g.queued(memory)
	if err != nil {
		return nil, err
	}
	if t.isIn() {
		return g.leaver(memory), nil
	}
	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case <-t.admitted:
		return g.leaver(memory), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, t); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		if err == nil {
			err = g.busy()
		}
	} else if err == nil {
		return g.leaver(memory), nil // admitted in the last moment
	} else {
		g.running, g.memory = g.running-1, g.memory-memory
	}
	g.admit()
	return nil, err
}

func (t *ticket) isIn() bool {
	select {
	case <-t.admitted:
		return true
	default:
		return false
	}
}

// queued returns the call's ticket: admitted already where there is room.
func (g *gate) queued(memory int64) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (len(g.queue) > 0 || !g.fits(memory)) && len(g.queue) >= g.limits.Waiting {
		return nil, g.busy()
	}
	t := &ticket{memory: memory, admitted: make(chan struct{})}
	g.queue = append(g.queue, t)
	g.admit()
	return t, nil
}

func (g *gate) fits(memory int64) bool {
	return g.running < g.limits.Calls && memory <= g.limits.Memory-g.memory
}

// admit lets in those at the head of the queue for whom there is room. The
// caller holds the lock.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.fits(g.queue[0].memory) {
		t := g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
		g.running, g.memory = g.running+1, g.memory+t.memory
		close(t.admitted)
	}
}

func (g *gate) leaver(memory int64) func() {
	began := time.Now()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running, g.memory = g.running-1, g.memory-memory
		g.mean += (time.Since(began) - g.mean) / 8
		g.admit()
	}
}

// busy returns the error of a call that is turned away: by when, at the pace of
// late, those before it will have been served. The caller holds the lock.
func (g *gate) busy() *BusyError {
	after := g.mean * time.Duration(len(g.queue)+1) / time.Duration(g.limits.Calls)
	after = min(max(after, time.Second), time.Minute)
	return &BusyError{Scope: g.scope, RetryAfter: (after + time.Second - 1).Truncate(time.Second)}
}

// check refuses a package whose calls could never be admitted.
func (g *gate) check(memory int64) error {
	if memory > g.limits.Memory {
		return fmt.Errorf("limits: a call may take %d bytes of memory, and the calls of the %s %d together; raise that limit", memory, g.scope, g.limits.Memory)
	}
	return nil
}

// outputCost is how many times its output limit a call may take of the host's
// memory beside the guest's: what it wrote, its result, and the copies made of
// that until it is sent, with what the collector has not freed yet. It is
// measured, with a result of which JSON escapes every byte.
const outputCost = 16

// footprint returns how many bytes of the host's memory a call may take.
func footprint(l tool.Limits) int64 { return l.Memory + outputCost*l.Output }

// begin begins a call of the package and of its engine.
func (p *Package) begin(ctx context.Context) (context.Context, func(), error) {
	ctx, left, err := p.running.begin(ctx)
	if err != nil {
		return ctx, nil, err
	}
	ctx, done, err := p.engine.running.begin(ctx)
	if err != nil {
		left()
		return ctx, nil, err
	}
	return ctx, func() {
		done()
		left()
	}, nil
}

// admit waits until the call may run: first for its package's other calls, so
// that of one package no more wait for the engine's than may run.
func (p *Package) admit(ctx context.Context) (leave func(), err error) {
	ctx, unhook := p.running.waiting(ctx)
	defer unhook()
	ctx, unhookEngine := p.engine.running.waiting(ctx)
	defer unhookEngine()
	memory := footprint(p.source.Manifest.Limits)
	leavePackage, err := p.gate.enter(ctx, memory)
	if err != nil {
		return nil, err
	}
	leaveEngine, err := p.engine.gate.enter(ctx, memory)
	if err != nil {
		leavePackage()
		return nil, err
	}
	return func() {
		leaveEngine()
		leavePackage()
	}, nil
}

// unadmitted returns the result of a call that never ran.
func unadmitted(err error) *Result {
	switch {
	case errors.Is(err, ErrBusy):
		return ended(Limit, err)
	case errors.Is(err, ErrClosed):
		return ended(Refused, err)
	}
	return ended(Timeout, err) // the caller went away
}
