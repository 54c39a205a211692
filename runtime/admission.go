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
// for ever by smaller ones. A principal besides LocalPrincipal has at most half
// of it: those of its calls that wait for its others do not hold up anybody
// else's.
type gate struct {
	scope  string
	limits CallLimits

	mu      sync.Mutex
	running int
	memory  int64
	queue   []*ticket
	shares  map[string]*share // by principal, of those who have calls here
	mean    time.Duration     // how long a call was in lately, a moving average
}

// share is what the calls of one principal have of a gate.
type share struct {
	running int
	memory  int64
	waiting int
}

// ticket is a call that waits. Its channel is closed when it is admitted.
type ticket struct {
	principal string
	memory    int64
	admitted  chan struct{}
}

// enter waits until a principal's call that may use so much memory is admitted,
// and returns what to do once when it has ended. It returns a [*BusyError] where
// too many wait already or the call waited too long, and the cause of ctx when
// that ends first.
func (g *gate) enter(ctx context.Context, principal string, memory int64) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t, err := g.queued(principal, memory)
	if err != nil {
		return nil, err
	}
	if t.isIn() {
		return g.leaver(t), nil
	}
	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case <-t.admitted:
		return g.leaver(t), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !t.isIn():
		g.forget(t)
		if err == nil {
			err = g.busy(principal)
		}
	case err == nil:
		return g.leaver(t), nil // admitted in the last moment
	default:
		g.release(t)
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
func (g *gate) queued(principal string, memory int64) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &ticket{principal: principal, memory: memory, admitted: make(chan struct{})}
	g.queue = append(g.queue, t)
	s := g.share(principal)
	s.waiting++
	g.admit()
	if !t.isIn() && (len(g.queue) > g.limits.Waiting || limited(principal) && s.waiting > half(g.limits.Waiting)) {
		g.forget(t)
		return nil, g.busy(principal)
	}
	return t, nil
}

// share returns what the principal has. The caller holds the lock.
func (g *gate) share(principal string) *share {
	s := g.shares[principal]
	if s == nil {
		if g.shares == nil {
			g.shares = map[string]*share{}
		}
		s = &share{}
		g.shares[principal] = s
	}
	return s
}

// limited reports whether a principal is kept to its share. LocalPrincipal is
// not: where it calls there is one user, or it is the operator.
func limited(principal string) bool { return principal != LocalPrincipal }

// half returns how many of so many places one principal may have.
func half(places int) int { return max(places/2, 1) }

func (g *gate) fits(memory int64) bool {
	return g.running < g.limits.Calls && memory <= g.limits.Memory-g.memory
}

// atShare reports whether the call has to wait for others of its principal. The
// only one of a principal has not, however large it is: it could never run.
func (g *gate) atShare(t *ticket) bool {
	s := g.share(t.principal)
	if !limited(t.principal) || s.running == 0 {
		return false
	}
	return s.running >= half(g.limits.Calls) || t.memory > g.limits.Memory/2-s.memory
}

// admit lets in those for whom there is room, in the order in which they came.
// It passes over those who wait for others of their principal, and stops at the
// first who waits for room. The caller holds the lock.
func (g *gate) admit() {
	passed := map[string]bool{} // principals
	for i := 0; i < len(g.queue); {
		t := g.queue[i]
		switch {
		case passed[t.principal] || g.atShare(t):
			passed[t.principal] = true
			i++
		case !g.fits(t.memory):
			return
		default:
			g.take(i)
		}
	}
}

// take lets in one of the queue. The caller holds the lock.
func (g *gate) take(i int) {
	t := g.queue[i]
	g.queue = slices.Delete(g.queue, i, i+1)
	g.running, g.memory = g.running+1, g.memory+t.memory
	s := g.share(t.principal)
	s.waiting, s.running, s.memory = s.waiting-1, s.running+1, s.memory+t.memory
	close(t.admitted)
}

// forget takes one that waits out of the queue. The caller holds the lock.
func (g *gate) forget(t *ticket) {
	i := slices.Index(g.queue, t)
	g.queue = slices.Delete(g.queue, i, i+1)
	g.share(t.principal).waiting--
	g.drop(t.principal)
}

// release gives back what one that is in has. The caller holds the lock.
func (g *gate) release(t *ticket) {
	g.running, g.memory = g.running-1, g.memory-t.memory
	s := g.share(t.principal)
	s.running, s.memory = s.running-1, s.memory-t.memory
	g.drop(t.principal)
}

// drop forgets a principal that has no calls here. The caller holds the lock.
func (g *gate) drop(principal string) {
	if *g.shares[principal] == (share{}) {
		delete(g.shares, principal)
	}
}

func (g *gate) leaver(t *ticket) func() {
	began := time.Now()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.release(t)
		g.mean += (time.Since(began) - g.mean) / 8
		g.admit()
	}
}

// busy returns the error of a principal's call that is turned away: by when, at
// the pace of late, those before it will have been served. The caller holds the
// lock.
func (g *gate) busy(principal string) *BusyError {
	after := g.mean * time.Duration(len(g.queue)+1) / time.Duration(g.limits.Calls)
	if s := g.shares[principal]; s != nil && limited(principal) {
		after = max(after, g.mean*time.Duration(s.waiting+1)/time.Duration(half(g.limits.Calls)))
	}
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

// admit waits until the principal's call may run: first for its package's other
// calls, so that of one package no more wait for the engine's than may run.
func (p *Package) admit(ctx context.Context, principal string) (leave func(), err error) {
	ctx, unhook := p.running.waiting(ctx)
	defer unhook()
	ctx, unhookEngine := p.engine.running.waiting(ctx)
	defer unhookEngine()
	memory := footprint(p.source.Manifest.Limits)
	leavePackage, err := p.gate.enter(ctx, principal, memory)
	if err != nil {
		return nil, err
	}
	leaveEngine, err := p.engine.gate.enter(ctx, principal, memory)
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
