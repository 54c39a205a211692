package runtime

import (
	"context"
	"time"

	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// startUpTime is what the wall clock shows to start-up code, wherever and whenever
// it runs: what it makes of the time is then no older in one instance than in
// another.
var startUpTime = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// callLater is by how much the monotonic clock of a call is ahead of the one that
// start-up code saw: a timer of up to an hour that start-up code set is due in every
// call, and not in those only that come late enough.
const callLater = time.Hour

// clock is the time that one guest sees. Sleeps do not wait: the guest's time goes
// ahead of the host's by them. It is not safe for concurrent use.
type clock struct {
	start  time.Time     // on the host's clock
	base   time.Duration // what the monotonic clock showed then
	stands time.Time     // where the wall clock stands but for sleeps; zero: it goes with the host's
	ahead  time.Duration // of the host's wall clock
	slept  time.Duration
	limit  time.Duration // for what the host and sleeps take together
	waits  bool          // sleeps do wait
}

var _ wasi.Clock = (*clock)(nil)

// newClock returns the clock of a call, which has time until limit has passed.
func newClock(limit, ahead time.Duration) *clock {
	return &clock{start: time.Now(), base: callLater, ahead: ahead, limit: limit}
}

// newStartUpClock returns the clock of start-up code. Its monotonic part starts at
// zero: a guest learns nothing about the host's uptime.
func newStartUpClock(limit, ahead time.Duration) *clock {
	return &clock{start: time.Now(), stands: startUpTime.Add(ahead), limit: limit}
}

// Now returns what the wall clock shows.
func (c *clock) Now() time.Time {
	if !c.stands.IsZero() {
		return c.stands.Add(c.slept)
	}
	return time.Now().Add(c.ahead + c.slept)
}

// Monotonic returns what the monotonic clock shows.
func (c *clock) Monotonic() time.Duration { return c.base + time.Since(c.start) + c.slept }

// Sleep sets the clocks ahead, or waits where that was asked for.
func (c *clock) Sleep(ctx context.Context, d time.Duration) {
	if c.waits {
		wasi.Wait(ctx, d)
		return
	}
	c.slept += min(d, c.limit+1-c.slept) // it does not overflow, and is late then
}

// Late returns a [*TimeoutError] where what the guest slept leaves it no time. What
// the host took alone is the context's.
func (c *clock) Late() error {
	if c.slept > 0 && c.slept+time.Since(c.start) > c.limit {
		return &TimeoutError{c.limit}
	}
	return nil
}
