package hostengine

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestMeter runs guests that pay fees at checks: all of them are counted, and one
// is stopped at the first check with which it has paid more than its limit.
func TestMeter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Uint64Range(0, 5*quantum).Draw(rt, "limit")
		fees := rapid.SliceOf(rapid.Int64Range(1, 2*quantum)).Draw(rt, "fees")
		m := NewMeter(limit)
		counter, sum := int64(0), uint64(0)
		if rapid.Bool().Draw(rt, "granted first") {
			counter = m.First()
		}
		for i, fee := range fees {
			counter -= fee
			sum += uint64(fee)
			if got := m.Spent(counter); got != sum {
				rt.Fatalf("spent %d, want %d", got, sum)
			}
			if counter >= 0 {
				if limit > 0 && sum > limit {
					rt.Fatalf("fee %d is above the limit, and there was no checkpoint", i)
				}
				continue
			}
			next, err := m.Next(counter)
			if _, ok := errors.AsType[*FuelError](err); ok != (limit > 0 && sum > limit) {
				rt.Fatalf("%v after %d of %d", err, sum, limit)
			}
			if err != nil {
				return
			}
			if next < 0 || next > quantum {
				rt.Fatalf("granted %d", next)
			}
			counter = next
		}
	})
}
