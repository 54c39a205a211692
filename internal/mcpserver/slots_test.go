package mcpserver

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/runtime"
)

// No principal takes the last slots from the others, and none is lost.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.IntRange(2, 9).Draw(t, "all")
		s := newSlots(all)
		held, sum := map[string]int{}, 0
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"alice", "bob", runtime.LocalPrincipal}).Draw(t, "who")
			n := rapid.IntRange(1, 3).Draw(t, "n")
			if held[who] >= n && rapid.Bool().Draw(t, "give") {
				s.give(who, n)
				held[who], sum = held[who]-n, sum-n
				continue
			}
			share := all / 2
			if who == runtime.LocalPrincipal {
				share = all
			}
			want := sum+n <= all && held[who]+n <= share
			if got := s.take(who, n); got != want {
				t.Fatalf("%s takes %d of %d, holds %d, all hold %d: %t", who, n, all, held[who], sum, got)
			}
			if want {
				held[who], sum = held[who]+n, sum+n
			}
		}
	})
}
