package runtime

import (
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// TestInputReplay: the second run of a call goes on from another start than the first,
// by another seed and another clock, in every way; so a program that keeps what it
// drew, or what the time was, before it read its request is not idempotent. What time
// it is there has to do with no day on which a call is made.
func TestInputReplay(t *testing.T) {
	for name, way := range inputWays {
		t.Run(name, func(t *testing.T) {
			m := inputPackage("")
			m.Manifest.Tools[0].Claim = capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
			p := inputs(t, way.options, m)
			for range 3 {
				for _, what := range []string{"keep past", "keep born"} {
					r := p.Call(t.Context(), Request{Tool: "t", Arguments: []byte(`{"do":"` + what + `"}`)})
					if r.Outcome != Violation || r.Replay != Further || r.Committed {
						t.Errorf("%s: %s, replay %q, committed %t: %v", what, r.Outcome, r.Replay, r.Committed, r.Err)
					}
				}
				for _, what := range []string{"keep day", "keep"} {
					r := p.Call(t.Context(), Request{Tool: "t", Arguments: []byte(`{"do":"` + what + `"}`)})
					if r.Outcome != OK || r.Replay != Idempotent || textOf(t, r) != "kept" {
						t.Errorf("%s: %s, replay %q: %v", what, r.Outcome, r.Replay, r.Err)
					}
				}
			}
		})
	}
}
