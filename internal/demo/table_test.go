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
	yes, no := true, false
	read, add := capabilities.ReadOnlyHint.String(), capabilities.DestructiveHint.String()
	rs := []*Result{
		{
			Package: "a-long-package", Tool: "with_a_long_name", Hint: read, Honest: &no, Outcome: runtime.Violation,
			violation: &capabilities.Violation{Operation: capabilities.OpSetTimes, Object: "/data/" + strings.Repeat("deep/", 30), Phase: capabilities.PhaseOperation},
			Attempted: "sets the times of a file by its path (path_filestat_set_times)", told: "it was stopped",
			changes: []string{"+a-long-package/data/one.json", "~a-long-package/data/two.json", "-x", "-y"},
		},
		{Package: "p", Tool: "t", Hint: read, Honest: &yes, Outcome: runtime.OK, Attempted: "reads"},
		{Package: "p", Tool: "other", Hint: add, Honest: &yes, Outcome: runtime.OK},
	}
	for _, width := range []int{80, 100, 120} {
		var b strings.Builder
		groups[0].print(&b, Options{Width: width}, rs)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && !strings.Contains(line, "deep/") {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{
			"declares", "a-long-package/with_a_long_name", "stopped: set_times of /data/deep/", "(path_filestat_set_times)", "+data/",
			"The client was told of with_a_long_name: it was stopped",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, b.String())
			}
		}
		if strings.Contains(text, "p/other") || strings.Index(text, "p/t") > strings.Index(text, "a-long-package") {
			t.Errorf("cases of another hint, or liars first:\n%s", b.String())
		}
	}
}

func TestDeclares(t *testing.T) {
	claim := capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}
	for hint, want := range map[string]string{"": "", "readOnlyHint": "true", "openWorldHint": "false", "idempotentHint": "nothing"} {
		if got := (&Result{Hint: hint, claim: claim}).declares(); got != want {
			t.Errorf("%s: %q, want %q", hint, got, want)
		}
	}
}

func TestDeed(t *testing.T) {
	for want, v := range map[string]capabilities.Violation{
		"create of /data/a":                   {Operation: capabilities.OpCreate, Object: "/data/a", Phase: capabilities.PhaseOperation},
		"socket":                              {Operation: capabilities.OpSocket, Object: "socket", Phase: capabilities.PhaseOperation},
		"at commit, /data/a#/b: key was lost": {Operation: capabilities.OpCommit, Object: "/data/a#/b", Phase: capabilities.PhaseCommit, Detail: "key was lost."},
	} {
		if got := (&Result{violation: &v}).deed(); got != want {
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
