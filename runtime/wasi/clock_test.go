package wasi

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fixedClock shows what it is set to, and waits on the host's.
type fixedClock struct {
	hostClock
	wall time.Time
	mono time.Duration
}

func (c fixedClock) Now() time.Time           { return c.wall }
func (c fixedClock) Monotonic() time.Duration { return c.mono }

// leapingClock goes ahead by what is slept, at once, and is late beyond most.
type leapingClock struct {
	slept, most time.Duration
}

var errLate = errors.New("late")

func (c *leapingClock) Now() time.Time           { return epoch.Add(c.slept) }
func (c *leapingClock) Monotonic() time.Duration { return c.slept }

func (c *leapingClock) Sleep(_ context.Context, d time.Duration) { c.slept += d }

func (c *leapingClock) Late() error {
	if c.slept > c.most {
		return errLate
	}
	return nil
}

// TestSleepLeaps: a sleep is done by the clock of the guest, which sees that it
// has passed.
func TestSleepLeaps(t *testing.T) {
	g := start(t, Options{Clock: &leapingClock{most: 2 * time.Hour}})
	begun := time.Now()
	g.poll(subscribeClock(clockMonotonic, uint64(time.Hour), 0))
	g.ok("clock_time_get", clockMonotonic, 0, atResult)
	if got := time.Duration(g.u64(atResult)); got != time.Hour {
		t.Errorf("monotonic %v", got)
	}
	g.ok("clock_time_get", clockRealtime, 0, atResult)
	if got := time.Unix(0, int64(g.u64(atResult))); !got.Equal(epoch.Add(time.Hour)) {
		t.Errorf("realtime %v", got)
	}
	if took := time.Since(begun); took > 10*time.Minute {
		t.Errorf("waited %v", took)
	}
}

// TestLate: a guest whose clock has no time left is stopped, by the sleep that
// took it and by all that it calls afterwards.
func TestLate(t *testing.T) {
	g := start(t, Options{Clock: &leapingClock{most: 30 * time.Minute}})
	g.put(atData, subscribeClock(clockMonotonic, uint64(time.Hour), 0))
	for _, call := range []func() (errno, error){
		func() (errno, error) { return g.try("poll_oneoff", atData, atPath, 1, atResult) },
		func() (errno, error) { return g.try("sched_yield") },
	} {
		_, err := call()
		if stop, ok := errors.AsType[*InterruptError](err); !ok || !errors.Is(stop, errLate) {
			t.Errorf("%v", err)
		}
	}
	if !errors.Is(g.process.Stop(), errLate) {
		t.Errorf("stop %v", g.process.Stop())
	}
}
