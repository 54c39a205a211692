package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/verify"
)

func TestVerify(t *testing.T) {
	pkg := newPackage(t, guest(create()))
	s := newShell(t)
	same := func(out string) string {
		return strings.ReplaceAll(digests.ReplaceAllString(out, "sha256:DIGEST"), pkg, "PACKAGE")
	}
	for name, flags := range map[string][]string{"verify.txt": nil, "verify.json": {"--format", "json"}, "verifysuggest.txt": {"--suggest"}} {
		code, out, diag := s.run(append([]string{"verify", pkg}, flags...)...)
		if code != exitViolation || diag != "" {
			t.Errorf("%s: status %d, %q", name, code, diag)
		}
		golden(t, name, same(out))
	}
	if _, err := os.Stat(s.state); err == nil {
		t.Error("made the state folder")
	}
	if code, out, _ := s.run("verify", pkg, "--tool", "save"); code != 0 || strings.Contains(out, "look") {
		t.Errorf("status %d, %s", code, out)
	}
}

// Where no tool's code runs there is nothing to tell.
func TestVerifyWithoutACall(t *testing.T) {
	pkg := newPackage(t, guest(create()))
	text := strings.ReplaceAll(manifest, "inputSchema: {type: object}", "inputSchema: {type: object, minProperties: 1}")
	if err := os.WriteFile(filepath.Join(pkg, "tool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, diag := newShell(t).run("verify", pkg)
	if code != exitError || !strings.Contains(diag, "no tool could be run") || !strings.Contains(out, "no call ended well: 1 refused") {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
}

// The command of a counter-example breaks the claim again, by the same operation.
func TestVerifyReproduces(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	root := t.TempDir()
	if err := guests.Extract(root); err != nil {
		t.Fatal(err)
	}
	pkg := filepath.Join(root, "guests", "liars")
	for _, name := range []string{"exchange_rate", "start_log", "save_contact", "log_visit", "spell_check"} {
		s := newShell(t)
		_, out, _ := s.run("verify", pkg, "--tool", name, "--format", "json")
		first := broken(t, out)
		// By a shell, as its reader would.
		bin := filepath.Join(t.TempDir(), "sandboxd")
		if err := os.Symlink(executable(t), bin); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", first.Command+" --format json")
		cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"),
			"XDG_STATE_HOME="+s.state, "XDG_CACHE_HOME="+s.cache)
		again, err := cmd.Output()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitViolation {
			t.Fatalf("%s: %v", first.Command, err)
		}
		if c := broken(t, string(again)); c.Operation != first.Operation || c.Object != first.Object || c.Call != first.Call {
			t.Errorf("%+v, want %+v", c, first)
		}
	}
}

func executable(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// broken returns the one counter-example of a report.
func broken(t *testing.T, text string) *verify.Counterexample {
	t.Helper()
	var r verify.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, x := range r.Tools {
		for _, h := range x.Hints {
			if h.Verdict == verify.Broken {
				return h.Counterexample
			}
		}
	}
	t.Fatalf("nothing broken in %s", text)
	return nil
}
