package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (-update writes it):\n%s", file, got)
	}
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "call", "demo", "serve", "inspect", "verify", "log", "build", "run", "approve", "pins", "config check", "token", "version", "help"} {
		s := newShell(t)
		code, out, diag := s.run(append(strings.Fields(command), "--help")...)
		if code != 0 || diag != "" {
			t.Errorf("%s --help: status %d, %q", command, code, diag)
		}
		golden(t, "help"+strings.ReplaceAll(command, " ", "_")+".txt", out)
	}
}

func TestNoCommandShowsHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var out strings.Builder
	if code := run(t.Context(), nil, nil, &out, &out, nil); code != 0 || !strings.Contains(out.String(), "Usage: sandboxd") {
		t.Errorf("status %d, %s", code, out.String())
	}
}

func TestNotYet(t *testing.T) {
	for _, line := range []string{
		"verify ./notes --suggest --format sarif", "verify ./notes --format junit", "release x", "new go x",
		"attest verify x", "push x", "pull x", "inspect oci://x", "serve oci://x",
	} {
		s := newShell(t)
		code, out, diag := s.run(strings.Fields(line)...)
		if code != exitError || out != "" || !strings.Contains(diag, "not supported yet") || strings.Count(diag, "\n") != 1 {
			t.Errorf("%s: status %d, %q, %q", line, code, out, diag)
		}
		if _, err := os.Stat(s.state); err == nil {
			t.Errorf("%s: made the state folder", line)
		}
	}
}

// Bad input is one line that names what is wrong; it changes nothing.
func TestBadInput(t *testing.T) {
	pkg := newPackage(t, guest(say(1)))
	file := filepath.Join(pkg, "tool.yaml")
	for _, c := range []struct{ line, want string }{
		{"cal", "call"},
		{"call save", "--package"},
		{"call --package " + pkg, "package demo has save, look"},
		{"call --package " + pkg + " save {", "not a JSON object: unexpected end of JSON input, at byte 1"},
		{`call --package ` + pkg + ` save {"a":1,}`, "at byte 8"},
		{"call --package " + pkg + " save null", "not a JSON object"},
		{"call --package " + pkg + " save --volume data", "want [PACKAGE/]NAME=DIR"},
		{"call --package " + pkg + " save --volume /data=" + pkg, "want [PACKAGE/]NAME=DIR"},
		{"call --package " + pkg + " save --volume data=/no/such/folder", "not found; make it first"},
		{"call --package " + pkg + " save --volume data=" + file, "not a folder"},
		{"call --package " + pkg + " save --volume other=" + pkg, "requests no volume other; it requests data"},
		{"call --package " + pkg + " save --volume other/data=" + pkg, "no package other; there is demo"},
		{"call --package " + pkg + " save --volume data=" + pkg + " --volume demo/data=" + pkg, "given twice"},
		{"call --package /no/such/package save", "/no/such/package"},
		{"inspect /no/such/package", "/no/such/package"},
		{"verify /no/such/package", "/no/such/package"},
		{"verify " + pkg + " --format html", "--format must be one of"},
		{"verify " + pkg + " --tool keep", "no such call: tool keep: the package has save, look"},
		{"verify " + pkg + " --cases /no/such.yaml", "/no/such.yaml"},
		{"verify " + pkg + " --cases " + file, "tool.yaml:1:1: is a mapping, want a list"},
		{"build /no/such/package", "/no/such/package"},
		{"serve --stdio", "no package"},
		{"serve", "no package"},
		{"serve " + pkg + " --http 0.0.0.0:80", "--http 0.0.0.0:80: others reach it and nobody has to authenticate"},
		{"serve " + pkg + " --http :80", "nobody has to authenticate"},
		{"token Alice", "not a name for a principal"},
		{"serve " + pkg + " --http 80", "host:port"},
		{"serve --config /no/such.yaml", "/no/such.yaml"},
		{"config check /no/such.yaml", "/no/such.yaml"},
		{"approve /no/such/package", "/no/such/package"},
		{"demo --serve --http :80", "nobody has to authenticate"},
		{"serve --stdio " + pkg + " " + pkg + " --volume data=" + pkg, "several packages"},
		{"run /no/such.wasm", "/no/such.wasm"},
		{"run " + pkg, "a folder; name a .wasm file, or call a tool of the package: sandboxd call -p " + pkg},
		{"run main_test.go", "GOOS=wasip1 GOARCH=wasm go build -o main_test.wasm main_test.go"},
		{"run " + file, "not WebAssembly"},
		{"run x.wasm -v", "sandboxd run MODULE.wasm -- FLAGS"},
		{"log --volume data=" + pkg, "unknown flag"},
		{"run x.wasm --dir here", "want HOST::GUEST"},
		{"run x.wasm --dir " + pkg + "::data", "absolute"},
		{"run x.wasm --dir /no/such::/data", "not found"},
		{"run x.wasm --env A", "want K=V"},
		{"run x.wasm --timeout 0s", "--timeout"},
	} {
		s := newShell(t)
		code, out, diag := s.run(strings.Fields(c.line)...)
		if code != exitError || out != "" || !strings.Contains(diag, c.want) || strings.Count(diag, "\n") != 1 {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.line, code, out, diag)
		}
		if _, err := os.Stat(s.state); err == nil {
			t.Errorf("%s: made the state folder", c.line)
		}
	}
}

func TestDefaultFolders(t *testing.T) {
	abs := func(parts ...string) string { return filepath.Join(append([]string{t.TempDir()}, parts...)...) }
	home, xdg := abs("home"), abs("xdg")
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=" + home}, filepath.Join(home, ".local", "state", "sandboxd")},
		{[]string{"HOME=" + home, "XDG_STATE_HOME=" + xdg}, filepath.Join(xdg, "sandboxd")},
		{[]string{"HOME=" + home, "XDG_STATE_HOME=relative"}, filepath.Join(home, ".local", "state", "sandboxd")},
		{[]string{"XDG_STATE_HOME=a", "XDG_STATE_HOME=" + xdg}, filepath.Join(xdg, "sandboxd")},
	} {
		if filepath.Separator == '\\' && len(c.env) == 1 {
			continue
		}
		a := &app{env: c.env}
		if got, err := a.defaultState(); err != nil || got != c.want {
			t.Errorf("%v: %q, %v, want %q", c.env, got, err, c.want)
		}
	}
	a := &app{env: []string{"XDG_CACHE_HOME=" + xdg}}
	if got, err := a.defaultCache(); err != nil || got != filepath.Join(xdg, "sandboxd") {
		t.Errorf("cache: %q, %v", got, err)
	}
}

func TestVersion(t *testing.T) {
	for _, args := range []string{"version", "--version"} {
		if code, out, _ := newShell(t).run(args); code != 0 || !strings.HasPrefix(out, "sandboxd ") {
			t.Errorf("%s: status %d, %q", args, code, out)
		}
	}
}

func TestHelpCommand(t *testing.T) {
	s := newShell(t)
	_, want, _ := s.run("call", "--help")
	if code, out, _ := s.run("help", "call"); code != 0 || out != want {
		t.Errorf("status %d, %q", code, out)
	}
	if code, out, _ := s.run("help"); code != 0 || !strings.Contains(out, "Usage: sandboxd") {
		t.Errorf("status %d, %q", code, out)
	}
	if code, _, diag := s.run("help", "nonsense"); code != exitError || strings.Count(diag, "\n") != 1 {
		t.Errorf("status %d, %q", code, diag)
	}
}

// A reader that goes away ends the program as an error, so that it clears away
// what it made, and not by a signal.
func TestBrokenPipe(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no signals")
	}
	r, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer stdout.Close()
	cmd := exec.Command(os.Args[0], "version")
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+t.TempDir())
	cmd.Stdout = stdout
	var diag strings.Builder
	cmd.Stderr = &diag
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitError || diag.String() != "" {
		t.Errorf("%v, %q", err, diag.String())
	}
}
