package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUndo: what a call saved is taken back once, and what was taken back can be
// put back.
func TestUndo(t *testing.T) {
	pkg := newPackageOnly(t)
	s := newShell(t)
	_, out, _ := s.run("call", "-p", pkg, "--json", "save")
	first := callID(t, out)
	code, out, diag := s.run("undo", first, "--json")
	if code != 0 {
		t.Fatalf("status %d, %q, %q", code, out, diag)
	}
	second := callID(t, out)
	for id, want := range map[string]int{first: exitError, "NONE": exitError} {
		if code, _, diag := s.run("undo", id); code != want || diag == "" {
			t.Errorf("%s: status %d, %q", id, code, diag)
		}
	}
	if code, _, diag := s.run("undo", second); code != 0 {
		t.Errorf("undo of the undo: status %d, %q", code, diag)
	}
	if code, out, _ := s.run("volume", "ls", "demo/data"); code != 0 || out == "" {
		t.Errorf("volume: status %d, %q", code, out)
	}
}

// TestUndoRefused: nothing is undone where a file has changed since, which is named,
// nor a call of another principal.
func TestUndoRefused(t *testing.T) {
	pkg, data := newPackageOnly(t), t.TempDir()
	s := newShell(t)
	_, out, _ := s.run("call", "-p", pkg, "--volume", "data="+data, "--json", "save")
	id := callID(t, out)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"another principal":   {[]string{"--principal", "alice"}, exitError, "other principals than alice"},
		"no principal at all": {[]string{"--principal", "A/"}, exitError, "not a name for a principal"},
	} {
		if code, _, diag := s.run(append([]string{"undo", id}, c.args...)...); code != c.code || !strings.Contains(diag, c.says) {
			t.Errorf("%s: status %d, %q", name, code, diag)
		}
	}
	file := filepath.Join(data, "new.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, diag := s.run("undo", id)
	if code != exitConflict || !strings.Contains(diag, "/data/new.txt has ") || strings.Contains(diag, data) {
		t.Errorf("status %d, %q", code, diag)
	}
	code, out, _ = s.run("undo", id, "--json")
	var r struct {
		Outcome   string
		Committed bool
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitConflict || r.Outcome != "conflict" || r.Committed {
		t.Errorf("status %d, %q, %v", code, out, err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, _, diag := s.run("undo", id); code != exitConflict || !strings.Contains(diag, "/data/new.txt is no longer there") {
		t.Errorf("removed: status %d, %q", code, diag)
	}
}

func newPackageOnly(t *testing.T) string {
	t.Helper()
	return newPackage(t, guest(create(), say(1)))
}

func callID(t *testing.T, out string) string {
	t.Helper()
	var r struct{ CallID string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.CallID == "" {
		t.Fatalf("%v: %q", err, out)
	}
	return r.CallID
}
