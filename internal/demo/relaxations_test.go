package demo

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/tool"
)

// needs are the tools of relaylink that end otherwise without a relaxation, by
// what its line begins with.
var needs = map[string][]string{
	"recoverable ": {"notebook_organize"},
	"volatile /data/contacts.json#/*/nickname":       {"rename_contact"},
	"history of /data/notebook under ":               {"notebook_update"},
	"transition at /data/forwarded.json#/*/state ":   {"read_forwarded"},
	"transition at /data/contacts.json#/*/state ":    {"accept_contact"},
	"transition at /data/attachments.json#/*/state ": {"attachment_upload_link"},
}

// TestRelaxationsAreNeeded: each relaxation that relaylink requests is what keeps
// a tool of its honest, and no tool needs another. A loss that can be taken back
// is accepted of every tool of the package, so the others are tried without that
// one.
func TestRelaxationsAreNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	all := relaylink(t, config.Relaxations{All: true})
	if len(all.wrong) > 0 {
		t.Errorf("with all relaxations: %v", all.wrong)
	}
	strict := all.lines[:0:0]
	recoverable := ""
	for _, l := range all.lines {
		if strings.HasPrefix(l, "recoverable ") {
			recoverable = l
		} else {
			strict = append(strict, l)
		}
	}
	if len(all.lines) != len(needs) || recoverable == "" {
		t.Fatalf("relaxations %q, want %d", all.lines, len(needs))
	}
	for _, without := range all.lines {
		kept := slices.DeleteFunc(slices.Clone(strict), func(l string) bool { return l == without })
		want := map[string]bool{}
		for _, l := range []string{recoverable, without} {
			for _, tool := range needed(t, l) {
				want[tool] = true
			}
		}
		got := relaylink(t, config.Relaxations{Lines: kept})
		if !maps.Equal(got.wrong, want) {
			t.Errorf("without %q: %v end otherwise, want %v", without, got.wrong, want)
		}
	}
}

func needed(t *testing.T, line string) []string {
	t.Helper()
	for begin, tools := range needs {
		if strings.HasPrefix(line, begin) {
			return tools
		}
	}
	t.Fatalf("relaxation %q: nobody needs it", line)
	return nil
}

// tried is what the cases of relaylink came to.
type tried struct {
	lines []string        // the relaxations that it requests
	wrong map[string]bool // the tools of which a case ended otherwise
}

// relaylink runs the cases of the package with some of its relaxations.
func relaylink(t *testing.T, approved config.Relaxations) tried {
	t.Helper()
	s, err := newStage(t.Context(), t.TempDir(), Options{Cache: SharedCache})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	spec, err := Entry(s.source, "relaylink")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(spec.Source, "tool.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tool.ParseManifest(file, text)
	if err != nil {
		t.Fatal(err)
	}
	spec.Relaxations = approved
	rs, err := s.run(t.Context(), "relaylink", spec)
	if err != nil {
		t.Fatal(err)
	}
	came := tried{m.Relaxations.Lines(), map[string]bool{}}
	for _, r := range rs {
		if !r.OK() {
			came.wrong[r.Tool] = true
		}
	}
	return came
}
