// Package enough runs properties whose draws have to reach something: a property
// that was never tried on what it is about says nothing, and a number of draws that
// is enough on most days fails on the others.
package enough

import (
	"testing"

	"pgregory.net/rapid"
)

// rounds is how often a property is checked at most. What a round misses by chance
// three times in four is missed by all of them once in 10^12 runs.
const rounds = 100

// Check is rapid.Check, done again until missing returns nothing, at most 100 times.
// Missing is called between rounds and says what no draw has reached yet, which is
// the failure when the last round has not either.
func Check(t testing.TB, property func(*rapid.T), missing func() string) {
	t.Helper()
	what := ""
	for range rounds {
		rapid.Check(t, property)
		if what = missing(); what == "" {
			return
		}
	}
	t.Errorf("after %d rounds of draws the test does not reach what it should: %s", rounds, what)
}
