package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests"
)

// TestBuildOut: a package that is written to a folder is the same package, and
// runs where there is no go command.
func TestBuildOut(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	source := t.TempDir()
	if err := guests.Extract(source); err != nil {
		t.Fatal(err)
	}
	notes, weather := filepath.Join(source, "guests", "notes"), filepath.Join(source, "guests", "weather")
	s := newShell(t)
	out := filepath.Join(t.TempDir(), "new", "notes")
	digest := func(code int, text, diag string) string {
		t.Helper()
		d := regexp.MustCompile(`sha256:\w+`).FindString(text)
		if code != 0 || d == "" {
			t.Fatalf("status %d, %q, %q", code, text, diag)
		}
		return d
	}
	in := digest(s.run("build", notes))
	for range 2 { // the second replaces the first
		code, text, diag := s.run("build", notes, "--out", out)
		if digest(code, text, diag) != in || !strings.Contains(text, filepath.Join(out, "module.wasm")) {
			t.Errorf("%q", text)
		}
	}
	digest(s.run("build", notes)) // and the source is as it was
	for _, bad := range []struct{ pkg, out, want string }{
		{notes, notes, "in it; name a new folder"},
		{weather, out, "has another package in it"},
		{out, filepath.Join(t.TempDir(), "x"), "no source to build"},
	} {
		code, _, diag := s.run("build", bad.pkg, "--out", bad.out)
		if code != exitError || !strings.Contains(diag, bad.want) || strings.Count(diag, "\n") != 1 {
			t.Errorf("%s: status %d, %q", bad.want, code, diag)
		}
	}

	if code, _, diag := s.run("call", "-p", notes, "add_note", `{"title":"milk","body":"two"}`); code != 0 {
		t.Fatalf("status %d, %q", code, diag)
	}
	t.Setenv("PATH", t.TempDir())
	if code, _, diag := s.run("call", "-p", notes, "add_note", `{"title":"milk","body":"two"}`); code != exitError || !strings.Contains(diag, "build --out") {
		t.Errorf("without go: status %d, %q", code, diag)
	}
	if code, _, diag := s.run("call", "-p", out, "add_note", `{"title":"bread","body":"one"}`); code != 0 {
		t.Errorf("written package: status %d, %q", code, diag)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
