package demo

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

func TestTableFits(t *testing.T) {
	rs := []*Result{
		{
			Package: "a-long-package", Tool: "with_a_long_name", Outcome: runtime.Violation, detail: "set_times",
			Attempted: "sets the times of a file by its path (path_filestat_set_times)",
			changes:   []string{"+a-long-package/data/one.json", "~a-long-package/data/two.json", "-x", "-y"},
		},
		{Package: "p", Tool: "t", Outcome: runtime.OK, Attempted: "reads"},
	}
	for _, width := range []int{80, 100, 120} {
		var b strings.Builder
		groups[0].print(&b, Options{Width: width}, rs)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{"a-long-package/with_a_long_name", "violation (set_times)", "(path_filestat_set_times)", "+data/"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, b.String())
			}
		}
	}
}

func TestDeclares(t *testing.T) {
	for want, r := range map[string]*Result{
		"":             {},
		"R*":           {Hint: "readOnlyHint"},
		"R+* O-":       {Hint: "readOnlyHint", claim: capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}},
		"R- D-* I+ O+": {Hint: "destructiveHint", claim: capabilities.Claim{ReadOnly: capabilities.False, Destructive: capabilities.False, Idempotent: capabilities.True, OpenWorld: capabilities.True}},
	} {
		if got := r.declares(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The ways in which a call can end differ in colour.
func TestStyles(t *testing.T) {
	var seen []string
	for _, o := range []runtime.Outcome{runtime.OK, runtime.Violation, runtime.ToolError, outcomeLoadError} {
		s := (&Result{Outcome: o}).style()
		if slices.Contains(seen, s) || s == term.Red {
			t.Errorf("%s: style %s is taken", o, s)
		}
		seen = append(seen, s)
	}
	if s := (&Result{Outcome: runtime.OK, wrong: []string{"x"}}).style(); s != term.Red {
		t.Errorf("wrong: style %s", s)
	}
}
