package guests

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

func manifest(t *testing.T, name string) *tool.Manifest {
	t.Helper()
	file := name + "/tool.yaml"
	text, err := fs.ReadFile(sources, file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tool.ParseManifest(file, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManifests(t *testing.T) {
	abis := map[tool.ABI]bool{}
	for _, name := range append(Names(), "corpus") {
		m := manifest(t, name)
		abis[m.ABI] = true
		if m.Name != name || m.Source == nil || m.Source.Language != "go" || m.Source.Dir != "." {
			t.Errorf("%s: name %q, source %+v", name, m.Name, m.Source)
		}
		if (m.ABI == tool.Command) != (len(m.Tools) > 0) {
			t.Errorf("%s: %s with %d tools in the manifest", name, m.ABI, len(m.Tools))
		}
	}
	if !abis[tool.Command] || !abis[tool.Reactor] {
		t.Errorf("ABIs %v: want both", abis)
	}
}

func TestCases(t *testing.T) {
	outcomes := []string{"ok", "tool_error", "violation", "load_error"}
	total := 0
	for _, name := range Names() {
		cases, err := Cases(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(cases)
		tried := map[string]bool{}
		for _, c := range cases {
			tried[c.Tool] = true
			if !slices.Contains(outcomes, c.Outcome) || c.Attempted == "" {
				t.Errorf("%s %s: outcome %q, attempted %q", name, c.Tool, c.Outcome, c.Attempted)
			}
			if honest := c.Honest != nil; honest != (c.Hint != "") {
				t.Errorf("%s %s: hint %q, honest given: %v", name, c.Tool, c.Hint, honest)
			}
			if c.Honest != nil && (c.Outcome == "ok") != *c.Honest {
				t.Errorf("%s %s: honest %v ends in %s", name, c.Tool, *c.Honest, c.Outcome)
			}
			if violation := c.Outcome == "violation"; !violation && c.Phase+c.Object != "" {
				t.Errorf("%s %s: phase %q, object %q of no violation", name, c.Tool, c.Phase, c.Object)
			}
			if !slices.Contains([]string{"", "operation", "commit", "replay"}, c.Phase) {
				t.Errorf("%s %s: phase %q", name, c.Tool, c.Phase)
			}
			var args map[string]any
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				t.Errorf("%s %s: %v", name, c.Tool, err)
			}
		}
		for _, d := range manifest(t, name).Tools {
			if !tried[d.Name] {
				t.Errorf("%s: no case for %s", name, d.Name)
			}
		}
	}
	if total < 30 {
		t.Errorf("%d cases, want at least 30", total)
	}
}

// Every liar breaks one claim that it makes, always the same one, and it claims
// that much: to be caught at the operation a tool is read-only, in the commit
// additive, in the replay idempotent.
func TestLiarsClaim(t *testing.T) {
	lies := map[string][]Case{}
	cases, err := Cases("liars")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Honest != nil && !*c.Honest {
			lies[c.Tool] = append(lies[c.Tool], c)
		}
	}
	senders := []string{"open_letter", "forward_log", "remind"} // which may send, and do so
	tools := manifest(t, "liars").Tools
	if len(tools) < 30 {
		t.Errorf("%d liars, want at least 30", len(tools))
	}
	for _, d := range tools {
		if len(lies[d.Name]) == 0 {
			t.Errorf("%s: lies in no case", d.Name)
		}
		e := d.Claim.Effective()
		for _, c := range lies[d.Name] {
			ok := !e.OpenWorld || slices.Contains(senders, d.Name)
			switch c.Hint + " " + c.Phase {
			case "readOnlyHint ", "readOnlyHint operation", "openWorldHint ":
				ok = ok && e.ReadOnly
			case "openWorldHint operation":
				ok = !e.OpenWorld
			case "destructiveHint commit":
				ok = ok && !e.ReadOnly && !e.Destructive && !e.Idempotent
			case "idempotentHint replay":
				ok = ok && !e.ReadOnly && e.Destructive && e.Idempotent
			default:
				ok = false
			}
			if !ok {
				t.Errorf("%s: breaks %s in phase %q and claims %+v", d.Name, c.Hint, c.Phase, d.Claim)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		object, named string
		want          bool
	}{
		{"/data/a", "/data/a", true},
		{"/data/a#/0", "/data/a", true},
		{"/data/a#/0/tags", "/data/a#/0", true},
		{"/data/a#/01", "/data/a#/0", false},
		{"/data/ab", "/data/a", false},
		{"/data", "/data/a", false},
	} {
		if got := Within(c.object, c.named); got != c.want {
			t.Errorf("%q in %q: %t", c.object, c.named, got)
		}
	}
}

func TestExtractBuilds(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // a second time over the first
		if err := Extract(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range Names() {
		for _, file := range []string{"main.go", "tool.yaml", "demo.json"} {
			if _, err := os.Stat(filepath.Join(dir, "guests", name, file)); err != nil {
				t.Error(err)
			}
		}
	}
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, ".extract-") {
			t.Errorf("extracted %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("type-checks the extracted module")
	}
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off", "GOWORK=off", "GOFLAGS=", "PWD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

func TestSeed(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // links that are there already are left
		for _, name := range Names() {
			if err := Seed(name, "data", filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for file, want := range map[string]string{
		"honest/current":     "version 2\n",
		"liars/docs/plan.md": "# Plan\n1. Hire\n2. Move\n",
		"escapes/report.txt": "Quarterly report\n",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", file, b, err, want)
		}
	}
	for _, folder := range []string{"notes", "liars/inbox"} {
		if entries, err := os.ReadDir(filepath.Join(dir, folder)); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v; want it empty", folder, entries, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "escapes", "dangling")); err != nil || target != "../sandboxd-escaped.txt" {
		t.Errorf("dangling: %q, %v", target, err)
	}
	if err := Seed("liars", "none", filepath.Join(dir, "none")); err != nil {
		t.Errorf("a volume without content: %v", err)
	}
}

func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Names(), "corpus") {
		if !strings.Contains(string(text), "| ["+name+"]("+name+") | ") {
			t.Errorf("README.md does not say what package %s is", name)
		}
	}
}
