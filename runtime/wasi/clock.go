package wasi

import (
	"context"
	"time"
)

// Clock is the time that a guest sees.
type Clock interface {
	Now() time.Time
	Monotonic() time.Duration // since any fixed moment; never falls
	// Sleep returns when d has passed on this clock, or when ctx ends.
	Sleep(ctx context.Context, d time.Duration)
	// Late says why the guest has no time left; nil while it has some. It is asked
	// at each call of the host, and then stops the guest.
	Late() error
}

// hostClock is the time of the host.
type hostClock struct{ start time.Time }

func (hostClock) Now() time.Time             { return time.Now() }
func (c hostClock) Monotonic() time.Duration { return time.Since(c.start) }
func (hostClock) Late() error                { return nil }

func (hostClock) Sleep(ctx context.Context, d time.Duration) { Wait(ctx, d) }

// Wait waits until d has passed on the host's clock, or ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// The clocks that the host has (preview 1, clockid). Those of CPU time it has
// not: EINVAL.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

const clockResolution = 1 // nanosecond

func clockResGet(_ context.Context, _ *Process, m memory, a []uint64) errno {
	if c := low(a[0]); c != clockRealtime && c != clockMonotonic {
		return eINVAL
	}
	return writeUint64(m, a[1], clockResolution)
}

// clockTimeGet writes the time in nanoseconds: since 1970 or since a fixed
// moment. The precision that is asked for is always met.
func clockTimeGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	t, ok := p.time(low(a[0]))
	if !ok {
		return eINVAL
	}
	return writeUint64(m, a[2], uint64(t))
}

// time returns what a clock shows, in nanoseconds; false for a clock that the
// host has not.
func (p *Process) time(clock uint64) (int64, bool) {
	switch clock {
	case clockRealtime:
		return p.clock.Now().UnixNano(), true
	case clockMonotonic:
		return p.clock.Monotonic().Nanoseconds(), true
	}
	return 0, false
}
