package runtime

import (
	"slices"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// TestHintsNameRelaxationsAsTheConfigurationDoes: what a message tells the
// operator to list is what can be listed.
func TestHintsNameRelaxationsAsTheConfigurationDoes(t *testing.T) {
	r := tool.Relaxations{
		Volatile:    []string{"/data/f#/next_id"},
		History:     []tool.History{{Of: "/data/b", Under: "/data/h"}},
		Transitions: []tool.Transition{{At: "/data/f#/*/status", From: "pending", To: "accepted"}},
		Recoverable: 30 * 24 * time.Hour,
	}
	rules, err := rulesOf(Binding{}, r)
	if err != nil {
		t.Fatal(err)
	}
	q := rules.Requested
	hints := []string{"volatile " + q.Volatile[0].String(), q.History[0].String(), q.Transitions[0].String()}
	if lines := r.Lines()[:3]; !slices.Equal(hints, lines) {
		t.Errorf("hints name %q, the configuration %q", hints, lines)
	}
}
