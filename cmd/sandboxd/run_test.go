package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	write := func(module []byte) string {
		file := filepath.Join(t.TempDir(), "prog.wasm")
		if err := os.WriteFile(file, module, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct {
		module []byte
		mode   string
		args   []string
		code   int
		saved  bool
	}{
		"saved":         {module: guest(create(), say(1)), code: 0, saved: true},
		"read-only":     {module: guest(create(), say(1)), mode: "::ro", code: 0},
		"own status":    {module: guest(create(), say(1), exit(7)), code: 7},
		"wide status":   {module: guest(create(), say(1), exit(256)), code: 1},
		"out of time":   {module: guest(create(), say(1), forever()), args: []string{"--timeout", "300ms"}, code: exitLimit},
		"with argument": {module: guest(create(), say(1)), args: []string{"--env", "A=1,2", "--", "--flag", "x"}, code: 0, saved: true},
	} {
		dir := t.TempDir()
		args := append([]string{"run", write(c.module), "--dir", dir + "::/data" + c.mode}, c.args...)
		code, out, diag := newShell(t).run(args...)
		if code != c.code || !strings.Contains(out, guestText) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", name, code, out, diag)
		}
		if _, err := os.Stat(filepath.Join(dir, "new.txt")); (err == nil) != c.saved {
			t.Errorf("%s: file on disk: %v, want %t", name, err, c.saved)
		}
	}
	file := write([]byte("\x00asm\x0d\x00\x01\x00"))
	if code, _, diag := newShell(t).run("run", file); code != exitError || strings.Count(diag, "\n") != 1 {
		t.Errorf("component: status %d, %q", code, diag)
	}
}

func TestBuildOfAModule(t *testing.T) {
	pkg := newPackage(t, guest(say(1)))
	code, out, diag := newShell(t).run("build", pkg)
	if code != 0 || !strings.Contains(out, filepath.Join(pkg, "demo.wasm")) || !strings.Contains(out, "sha256:") {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
}
