package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sandboxd/sandboxd/guests"
)

// addFiles gives a package files of its own.
func addFiles(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "own"), fstest.MapFS{"files/a/b.txt": {Data: []byte("b")}, "files/c": {}}); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "tool.yaml")
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = os.WriteFile(manifest, append(text, "files: own/files\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

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
	addFiles(t, notes)
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
		{notes, notes, "the folder of the source; name another"},
		{notes, filepath.Join(notes, "own"), "in it; name a new folder"},
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
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}
