package wasi

import "context"

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
		return p.now().UnixNano(), true
	case clockMonotonic:
		return p.monotonic().Nanoseconds(), true
	}
	return 0, false
}
