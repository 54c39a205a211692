package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// ErrBusy is matched by a [*BusyError].
var ErrBusy = errors.New("too many calls")

// BusyError is a call that was not begun because too many others run or wait, or
// because its package was not loaded in time.
type BusyError struct {
	Scope      string        // "package NAME" or "host": what has too many
	RetryAfter time.Duration // an estimate, in whole seconds
	Loading    bool          // the package is still being loaded, that is all
}

// Error names what is busy and when to come again.
func (e *BusyError) Error() string {
	if e.Loading {
		return fmt.Sprintf("%s: is still being loaded; try again in %s", e.Scope, e.RetryAfter)
	}
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
	shares  map[string]share // by principal, of those who have calls here
	mean    time.Duration    // how long a call was in lately, a moving average
}

// share is what the calls of one principal have of a gate.
type share struct {
	running int
	memory  int64
	waiting int
}

// ticket is a call at a gate.
type ticket struct {
	gate      *gate
	principal string
	memory    int64
	in        atomic.Bool
	turn      chan struct{} // closed when one that has to wait is in; nil for others
	began     time.Time     // to be in
}

// enter waits until a principal's call that may use so much memory is admitted,
// and returns its ticket, to leave once. It returns a [*BusyError] where too many
// wait already or the call waited too long, and the cause of ctx when that ends
// first.
func (g *gate) enter(ctx context.Context, principal string, memory int64) (*ticket, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t, err := g.queued(principal, memory)
	if err != nil || t.in.Load() {
		return t, err
	}
	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case <-t.turn:
		return t, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !t.in.Load():
		g.forget(t)
		if err == nil {
			err = g.busy(principal)
		}
	case err == nil:
		return t, nil // admitted in the last moment
	default:
		g.release(t)
	}
	g.admit()
	return nil, err
}

// atOnce returns the ticket of a call that need not wait, nil for others.
func (g *gate) atOnce(principal string, memory int64) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.come(principal, memory)
	if !t.in.Load() {
		g.forget(t)
		return nil
	}
	return t
}

// queued returns the call's ticket: admitted already where there is room.
func (g *gate) queued(principal string, memory int64) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.come(principal, memory)
	if t.in.Load() {
		return t, nil
	}
	if len(g.queue) > g.limits.Waiting || limited(principal) && g.shares[principal].waiting > half(g.limits.Waiting) {
		g.forget(t)
		return nil, g.busy(principal)
	}
	t.turn = make(chan struct{})
	return t, nil
}

// come puts a call at the end of the queue, and lets it in where there is room. The
// caller holds the lock.
func (g *gate) come(principal string, memory int64) *ticket {
	t := &ticket{gate: g, principal: principal, memory: memory}
	g.queue = append(g.queue, t)
	s := g.shares[principal]
	s.waiting++
	g.set(principal, s)
	g.admit()
	return t
}

// set says what a principal has; one that has nothing is forgotten. The caller
// holds the lock.
func (g *gate) set(principal string, s share) {
	switch {
	case s == share{}:
		delete(g.shares, principal)
	case g.shares == nil:
		g.shares = map[string]share{principal: s}
	default:
		g.shares[principal] = s
	}
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
	s := g.shares[t.principal]
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
	s := g.shares[t.principal]
	g.set(t.principal, share{waiting: s.waiting - 1, running: s.running + 1, memory: s.memory + t.memory})
	t.began = time.Now()
	t.in.Store(true)
	if t.turn != nil {
		close(t.turn)
	}
}

// forget takes one that waits out of the queue. The caller holds the lock.
func (g *gate) forget(t *ticket) {
	i := slices.Index(g.queue, t)
	g.queue = slices.Delete(g.queue, i, i+1)
	s := g.shares[t.principal]
	s.waiting--
	g.set(t.principal, s)
}

// release gives back what one that is in has. The caller holds the lock.
func (g *gate) release(t *ticket) {
	g.running, g.memory = g.running-1, g.memory-t.memory
	s := g.shares[t.principal]
	g.set(t.principal, share{waiting: s.waiting, running: s.running - 1, memory: s.memory - t.memory})
}

// leave gives back what a call that is in has, when it has ended.
func (t *ticket) leave() {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t)
	g.mean += (time.Since(t.began) - g.mean) / 8
	g.admit()
}

// withdraw gives it back where nothing was done in it.
func (t *ticket) withdraw() {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t)
	g.admit()
}

// busy returns the error of a principal's call that is turned away: by when, at
// the pace of late, those before it will have been served. The caller holds the
// lock.
func (g *gate) busy(principal string) *BusyError {
	after := g.mean * time.Duration(len(g.queue)+1) / time.Duration(g.limits.Calls)
	if s, ok := g.shares[principal]; ok && limited(principal) {
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

// begin begins a call of the package and of its engine, which ends by being stopped,
// at the latest.
func (p *Package) begin(ctx context.Context) (context.Context, *runningCall, error) {
	own, stop := context.WithCancelCause(ctx)
	c := &runningCall{stop}
	if err := p.running.add(c); err != nil {
		stop(nil)
		return ctx, nil, err
	}
	if err := p.engine.running.add(c); err != nil {
		stop(nil)
		p.running.end(c)
		return ctx, nil, err
	}
	return own, c, nil
}

// end is for when a call that began has ended.
func (p *Package) end(c *runningCall) {
	c.stop(nil)
	p.engine.running.end(c)
	p.running.end(c)
}

// admission is what a call has of the gates of its package and of the host.
type admission struct{ pkg, host *ticket }

func (a admission) leave() {
	a.host.leave()
	a.pkg.leave()
}

// admit waits until the principal's call may run: first for its package's other
// calls, so that of one package no more wait for the engine's than may run, then
// for the package to be loaded.
func (p *Package) admit(ctx context.Context, principal string) (admission, error) {
	memory := footprint(p.source.Manifest.Limits)
	if a, ok := p.admitAtOnce(ctx, principal, memory); ok {
		return a, nil
	}
	ctx, unhook := p.running.waiting(ctx)
	defer unhook()
	ctx, unhookEngine := p.engine.running.waiting(ctx)
	defer unhookEngine()
	own, err := p.gate.enter(ctx, principal, memory)
	if err != nil {
		return admission{}, err
	}
	if err := p.loaded(ctx); err != nil {
		own.leave()
		return admission{}, err
	}
	host, err := p.engine.gate.enter(ctx, principal, memory)
	if err != nil {
		own.leave()
		return admission{}, err
	}
	return admission{own, host}, nil
}

// admitAtOnce admits a call that has to wait for nothing.
func (p *Package) admitAtOnce(ctx context.Context, principal string, memory int64) (a admission, ok bool) {
	if ctx.Err() != nil || p.running.closed() || p.engine.running.closed() || !p.isLoaded() {
		return a, false
	}
	if a.pkg = p.gate.atOnce(principal, memory); a.pkg == nil {
		return a, false
	}
	if a.host = p.engine.gate.atOnce(principal, memory); a.host == nil {
		a.pkg.withdraw()
		return a, false
	}
	return a, true
}

// unadmitted returns the result of a call that never ran.
func unadmitted(err error) *Result {
	switch {
	case errors.Is(err, ErrBusy):
		return ended(Limit, err)
	case errors.Is(err, ErrClosed), isLoadError(err):
		return ended(Refused, err)
	}
	return ended(Timeout, err) // the caller went away
}
