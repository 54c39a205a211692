package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// subsets returns every set of the names.
func subsets(names []string) [][]string {
	var sets [][]string
	for set := range 1 << len(names) {
		var s []string
		for i, name := range names {
			if set>>i&1 == 1 {
				s = append(s, name)
			}
		}
		sets = append(sets, s)
	}
	return sets
}

// TestClientCapabilities: a tool runs for clients that declare all that it
// requires. The calls of others are refused, told and recorded, and no guest runs.
func TestClientCapabilities(t *testing.T) {
	var ends []*Result
	guests := 0
	e := newEngine(t, Observer{
		CallEnd:  func(_ CallInfo, r *Result) { ends = append(ends, r) },
		Acquired: func(string) { guests++ },
	})
	sets := subsets(tool.ClientCapabilities())
	for _, required := range sets {
		p := pack(writesAndSmiles(), tool.Command, writer)
		p.Manifest.Tools[0].ClientCapabilities = required
		loaded, dir := load(t, e, p)
		for _, declared := range sets {
			before := guests
			r := loaded.Call(context.Background(), Request{Tool: "t", DryRun: true, ClientCapabilities: declared})
			if len(ends) == 0 || ends[len(ends)-1] != r {
				t.Fatal("the call is not recorded")
			}
			var want []string
			for _, name := range required {
				if !slices.Contains(declared, name) {
					want = append(want, name)
				}
			}
			if len(want) == 0 {
				if r.Outcome != OK || guests != before+1 {
					t.Errorf("requires %v, declared %v: %s, %v", required, declared, r.Outcome, r.Err)
				}
				continue
			}
			c, ok := errors.AsType[*CapabilityError](r.Err)
			if r.Outcome != Refused || !ok || !slices.Equal(c.Missing, want) || guests != before {
				t.Errorf("requires %v, declared %v: %s, %v", required, declared, r.Outcome, r.Err)
			}
			if s := textOf(t, r); s != "t was not called: it requires a client that declares "+strings.Join(want, ", ")+"." {
				t.Errorf("told %q", s)
			}
		}
		untouched(t, dir)
	}
}
