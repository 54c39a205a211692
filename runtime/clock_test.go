package runtime

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestStartUpClockStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStartUpClock(time.Minute, 0)
		time.Sleep(time.Second)
		if got := c.Now(); !got.Equal(startUpTime) {
			t.Errorf("wall clock %v after a second", got)
		}
		if got := c.Monotonic(); got != time.Second {
			t.Errorf("monotonic %v", got)
		}
		c.Sleep(t.Context(), 2*time.Second)
		if got := c.Now(); !got.Equal(startUpTime.Add(2 * time.Second)) {
			t.Errorf("wall clock %v after a sleep", got)
		}
		if got := c.Monotonic(); got != 3*time.Second {
			t.Errorf("monotonic %v after a sleep", got)
		}
	})
}

// TestSleepsAreVirtual: both clocks of a call go ahead by a sleep, and what it slept
// counts against its time.
func TestSleepsAreVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := time.Now()
		c := newClock(5*time.Second, time.Hour)
		c.Sleep(t.Context(), 3*time.Second)
		if !time.Now().Equal(host) {
			t.Error("it waited")
		}
		if got := c.Now(); !got.Equal(host.Add(time.Hour + 3*time.Second)) {
			t.Errorf("wall clock %v", got)
		}
		if got := c.Monotonic(); got != callLater+3*time.Second {
			t.Errorf("monotonic %v", got)
		}
		time.Sleep(2 * time.Second)
		if err := c.Late(); err != nil {
			t.Errorf("after all of its time: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if late, ok := errors.AsType[*TimeoutError](c.Late()); !ok || late.Limit != 5*time.Second {
			t.Errorf("after more than its time: %v", c.Late())
		}
	})
}

func TestSleepForEver(t *testing.T) {
	c := newClock(5*time.Second, 0)
	for range 3 {
		c.Sleep(t.Context(), math.MaxInt64)
	}
	if c.Late() == nil {
		t.Error("it is not late")
	}
	if c.Monotonic() < 0 {
		t.Errorf("monotonic %v", c.Monotonic())
	}
}

// TestSleepsOfPrograms: what a person runs waits in fact.
func TestSleepsOfPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := time.Now()
		c := newClock(time.Second, 0)
		c.waits = true
		c.Sleep(t.Context(), time.Minute)
		if got := time.Since(host); got != time.Minute {
			t.Errorf("waited %v", got)
		}
		if err := c.Late(); err != nil { // the context's to say
			t.Error(err)
		}
	})
}
