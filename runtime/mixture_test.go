package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestMixtureIsAConflict: what a call saw while others wrote may be no state that
// ever was. It is not blamed for it, but for what it does when it is run again.
func TestMixtureIsAConflict(t *testing.T) {
	additive := capabilities.Claim{Destructive: capabilities.False, OpenWorld: capabilities.False}
	for name, c := range map[string]struct {
		body  []byte
		claim capabilities.Claim
		want  Outcome
	}{
		"loss":  {w.Seq(open("old", oflagTrunc, rightWrite), write(-1, 3)), additive, Violation},
		"error": {w.Seq(open("old", 0, rightRead), exit(1)), writer, ToolError},
	} {
		var conflicts, runs, violations int
		var folder string
		e := newEngine(t, Observer{
			Released: func(string) {
				if runs++; runs == 1 {
					if err := os.WriteFile(filepath.Join(folder, "old"), []byte("meanwhile\n"), 0o644); err != nil {
						t.Error(err)
					}
				}
			},
			Conflict:  func(CallInfo) { conflicts++ },
			Violation: func(CallInfo, capabilities.Violation) { violations++ },
		})
		p, dir := load(t, e, pack(command("old", "new", c.body), tool.Command, c.claim))
		folder = dir
		r := p.Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != c.want || conflicts != 1 || runs != 2 || violations > 1 {
			t.Errorf("%s: %s (%v) after %d conflicts, %d runs, %d violations", name, r.Outcome, r.Err, conflicts, runs, violations)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "old")); err != nil || string(b) != "meanwhile\n" {
			t.Errorf("%s: left %q, %v", name, b, err)
		}
	}
}
