package runtime

import (
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// TestShownEffectsAreBounded: a guest chooses how many effects it has and their
// names. Changes are not cut off by reads.
func TestShownEffectsAreBounded(t *testing.T) {
	var effects []capabilities.Effect
	for range 2 * maxEffects {
		effects = append(effects, capabilities.Effect{Verb: capabilities.Read, Object: "/data/a"})
	}
	effects = append(effects, capabilities.Effect{Verb: capabilities.Delete, Object: strings.Repeat("x", 2*maxObject)})
	got := shown(effects)
	if len(got) != maxEffects || !wrote(got) {
		t.Errorf("%d effects shown, a change among them: %v", len(got), wrote(got))
	}
	for _, e := range got {
		if len(e.Object) > maxObject+len("…") {
			t.Errorf("an object of %d bytes is shown", len(e.Object))
		}
	}
	if last := got[len(got)-1]; last.Detail == "" {
		t.Errorf("the last effect, %+v, does not say that there are more", last)
	}
}
