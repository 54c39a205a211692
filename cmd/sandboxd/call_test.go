package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

func TestCallOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		module  []byte
		tool    string
		code    int
		outcome runtime.Outcome
		stdout  string
		stderr  string
		saved   bool
	}{
		"saved":        {guest(create(), say(1)), "save", 0, runtime.OK, guestText + "\n", "saved; create file /data/new.txt", true},
		"read":         {guest(say(1)), "look", 0, runtime.OK, guestText + "\n", "ok: nothing changed\n", false},
		"violation":    {guest(create(), say(1)), "look", exitViolation, runtime.Violation, "", "broken readOnlyHint: create /data/new.txt\n", false},
		"tool error":   {guest(create(), say(1), exit(1)), "save", exitToolError, runtime.ToolError, guestText + "\n", "nothing saved", false},
		"no message":   {guest(create(), exit(1)), "save", exitToolError, runtime.ToolError, "", "nothing saved", false},
		"timeout":      {guest(create(), forever()), "save", exitLimit, runtime.Timeout, "", "it ran out of time", false},
		"log of guest": {guest(say(2), say(1)), "save", 0, runtime.OK, guestText + "\n", "ok: nothing changed\n", false},
		"log of crash": {guest(create(), say(2), trap()), "save", exitToolError, runtime.ToolError, "", "\nlog: " + guestText + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			pkg, data := newPackage(t, c.module), t.TempDir()
			s := newShell(t)
			code, out, diag := s.run("call", "--package", pkg, "--volume", "data="+data, c.tool)
			if code != c.code || !strings.Contains(out, c.stdout) || !strings.Contains(diag, c.stderr) || !strings.Contains(diag, string(c.outcome)+": ") {
				t.Errorf("status %d, stdout %q, stderr %q", code, out, diag)
			}
			if c.outcome == runtime.Violation && strings.Contains(out+diag, guestText) {
				t.Errorf("the guest's output is shown: %q, %q", out, diag)
			}
			if _, err := os.Stat(filepath.Join(data, "new.txt")); (err == nil) != c.saved {
				t.Errorf("file on disk: %v, want %t", err, c.saved)
			}
		})
	}
}

// The JSON form has the fields of the contract, lists even where they are empty.
func TestCallJSON(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(1)))
	for tool, want := range map[string]string{
		"save": `{"committed":true,"denials":[],"effects":[{"bytes":0,"kind":"file","object":"/data/new.txt","verb":"create"}],` +
			`"outcome":"ok","replay":"idempotent","result":{"content":[{"text":"said by the guest","type":"text"}]},"violation":null}`,
		"look": `{"committed":false,"denials":[],"effects":[],"outcome":"violation",` +
			`"violation":{"hint":"readOnlyHint","object":"/data/new.txt","operation":"create","phase":"operation"}}`,
	} {
		s := newShell(t)
		_, out, diag := s.run("call", "--package", pkg, tool, "--json", `{"a":1}`)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || diag != "" || strings.Count(out, "\n") != 1 {
			t.Fatalf("%s: %v: %q, %q", tool, err, out, diag)
		}
		if id, _ := got["callId"].(string); id == "" {
			t.Errorf("%s: no call id in %s", tool, out)
		}
		delete(got, "callId")
		if tool == "look" {
			delete(got, "result") // the engine's words
		}
		b, err := json.Marshal(got)
		if err != nil || string(b) != want {
			t.Errorf("%s: got  %s\nwant %s", tool, b, want)
		}
	}
}

func TestCallDryRun(t *testing.T) {
	pkg, data := newPackage(t, guest(create(), say(1))), t.TempDir()
	code, out, diag := newShell(t).run("call", "--package", pkg, "--volume", "demo/data="+data, "save", "--dry-run")
	if code != 0 || !strings.Contains(out, guestText) || !strings.Contains(diag, "ok: dry run, nothing saved\ncreate /data/new.txt (0 bytes)\n") {
		t.Errorf("status %d, stdout %q, stderr %q", code, out, diag)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("on disk: %v, %v", left, err)
	}
}

// The guest's log is shown after a bad end, after a good one with -v only, with
// nothing in it that a terminal obeys; the stack of WebAssembly with -v only.
func TestCallShowsGuestLog(t *testing.T) {
	crash, fine := newPackage(t, guest(say(2), trap())), newPackage(t, guest(say(2), say(1)))
	for _, c := range []struct {
		pkg        string
		args       []string
		log, stack bool
	}{
		{crash, nil, true, false},
		{crash, []string{"--json"}, true, false},
		{crash, []string{"-v"}, true, true},
		{fine, nil, false, false},
		{fine, []string{"-v"}, true, false},
	} {
		_, _, diag := newShell(t).run(append([]string{"call", "-p", c.pkg, "save"}, c.args...)...)
		if strings.Contains(diag, "log: "+guestText+"\n") != c.log || strings.Contains(diag, "wasm stack trace") != c.stack {
			t.Errorf("%v: %q", c.args, diag)
		}
	}
	var diag strings.Builder
	a := &app{stderr: &diag}
	a.printLog([]byte(strings.Repeat("x\n", 60) + "\x1b[31mred\n\n"))
	if s := diag.String(); !strings.Contains(s, "log: x\nlog: … 11 lines between; -v shows them\nlog: x\n") || !strings.HasSuffix(s, "log: \\x1b[31mred\n") {
		t.Errorf("%q", s)
	}
}

// Start-up code that crashes is one line and what it said.
func TestLoadErrorShowsGuestLog(t *testing.T) {
	m := w.Module{
		Funcs: append(append([]w.Func{}, w.Imports...),
			w.Func{Name: "_initialize", Body: w.Seq(say(2), trap())},
			w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(0)},
			w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(0)}),
		Memory: [2]uint32{1, 2},
		Data:   w.ProgramData(),
	}.Encode()
	pkg := newPackage(t, m)
	text := strings.Replace(manifest, "abi: command", "abi: reactor", 1)
	if err := os.WriteFile(filepath.Join(pkg, "tool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	code, _, diag := s.run("call", "-p", pkg, "save")
	if code != exitError || strings.Count(diag, "\n") != 2 || !strings.Contains(diag, "_initialize") || !strings.HasSuffix(diag, "\nlog: "+guestText+"\n") {
		t.Errorf("status %d, %q", code, diag)
	}
	if _, out, _ := s.run("log"); !strings.Contains(out, "demo  does not load: _initialize: ") || !strings.Contains(out, "; log: "+guestText) {
		t.Errorf("log: %q", out)
	}
}

// What a manifest says that has no effect yet is said once.
func TestCallWarns(t *testing.T) {
	pkg := newPackage(t, guest(say(1)))
	text := strings.Replace(manifest, "limits: {", "limits: {", 1) + "warmup: {tool: look}\nlabels: {a: b}\n"
	if err := os.WriteFile(filepath.Join(pkg, "tool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"call look -p " + pkg, "serve --stdio " + pkg} {
		_, _, diag := newShell(t).run(strings.Fields(line)...)
		if strings.Count(diag, "warning: package demo: warmup: for abi reactor only") != 1 || strings.Count(diag, "labels: not supported yet") != 1 {
			t.Errorf("%s: %q", line, diag)
		}
	}
	if _, out, _ := newShell(t).run("inspect", pkg); !strings.Contains(out, "warmup: for abi reactor only") {
		t.Errorf("inspect: %q", out)
	}
}

// The command line is no client that a tool could ask for something.
func TestCallHasNoClient(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(1)))
	text := strings.Replace(manifest, "    annotations: {destructiveHint", "    clientCapabilities: [sampling, roots]\n    annotations: {destructiveHint", 1)
	if err := os.WriteFile(filepath.Join(pkg, "tool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	code, out, diag := s.run("call", "-p", pkg, "save")
	if want := "save was not called: it requires a client that declares roots, sampling.\n" +
		"sandboxd call is no such client: serve the package to an MCP host that declares roots, sampling\n" +
		"refused: nothing saved\n"; code != exitError || out != "" || !strings.HasSuffix(diag, want) {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
	if _, out, _ := s.run("log"); !strings.Contains(out, "refused") {
		t.Errorf("log: %q", out)
	}
	if _, out, _ := s.run("inspect", pkg); strings.Count(out, "requires a client that declares roots, sampling") != 1 {
		t.Errorf("inspect: %q", out)
	}
}

// A folder that cannot be written is told before the call of a tool that may
// write it.
func TestCallWarnsOfUnwritableFolder(t *testing.T) {
	data := t.TempDir()
	if err := os.Chmod(data, 0o500); err != nil {
		t.Fatal(err)
	}
	if writable(data) {
		t.Skip("this user may write everywhere")
	}
	pkg := newPackage(t, guest(say(1)))
	for tool, warned := range map[string]bool{"save": true, "look": false} {
		_, _, diag := newShell(t).run("call", "-p", pkg, "--volume", "data="+data, tool)
		if strings.Contains(diag, "cannot be written") != warned {
			t.Errorf("%s: %q", tool, diag)
		}
	}
}

// Without a folder of the operator the volume is a managed one, in the state
// folder, and what a call saves there the next call finds.
func TestCallManagedVolume(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(1)))
	s := newShell(t)
	for _, want := range []string{"saved; create file /data/new.txt", "nothing changed"} {
		if code, _, diag := s.run("call", "--package", pkg, "save"); code != 0 || !strings.Contains(diag, want) {
			t.Errorf("status %d, %q, want %q", code, diag, want)
		}
	}
}

func TestCallArguments(t *testing.T) {
	pkg := newPackage(t, guest(say(1)))
	s := newShell(t)
	s.stdin = `{"n":1}`
	if code, _, diag := s.run("call", "--package", pkg, "look", "-"); code != 0 {
		t.Errorf("from standard input: status %d, %q", code, diag)
	}
	s.stdin = `[`
	if code, _, diag := s.run("call", "--package", pkg, "look", "-"); code != exitError || !strings.Contains(diag, "not a JSON object") {
		t.Errorf("bad standard input: status %d, %q", code, diag)
	}
	code, _, diag := s.run("call", "--package", pkg, "nothing")
	if code != exitError || !strings.Contains(diag, "it has save, look") {
		t.Errorf("unknown tool: status %d, %q", code, diag)
	}
}

// A log that cannot be written costs no call its verdict; the operator is told
// of each lost record at once, and of their number at the end. A call that would
// change something is not saved.
func TestCallWithoutLog(t *testing.T) {
	s := newShell(t)
	s.run("log") // makes the store
	s.sql("CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'no room'); END")
	pkg := newPackage(t, guest(create(), say(1)))
	if code, out, diag := s.run("call", "-p", pkg, "save"); code != exitError || !strings.Contains(diag, "no room") {
		t.Errorf("a call that is not on record: status %d, %q, %q", code, out, diag)
	}
	if code, out, _ := s.run("volume", "ls"); code != 0 || out != "" {
		t.Errorf("what it changed is there: %d, %q", code, out)
	}
	code, _, diag := s.run("call", "-p", pkg, "look")
	if code != exitViolation || !strings.Contains(diag, "audit record (violation of demo, call ") ||
		!strings.Contains(diag, "records are missing in the audit log") {
		t.Errorf("status %d, %q", code, diag)
	}
}

// logOfOneCall sees that a dry run and a whole call can be told from the log.
func logOfOneCall(t *testing.T, s *shell) {
	t.Helper()
	pkg := newPackage(t, guest(create(), say(2), say(2)))
	other := newShell(t)
	_, dry, _ := other.run("call", "-p", pkg, "save", "--dry-run", "--json")
	var r struct{ CallID string }
	if err := json.Unmarshal([]byte(dry), &r); err != nil {
		t.Fatal(err)
	}
	code, out, _ := other.run("log", r.CallID)
	if code != 0 || !strings.Contains(out, "ok, dry run, nothing saved") || !strings.Contains(out, "\n  log: "+guestText) || !strings.Contains(out, "\n  took: ") {
		t.Errorf("status %d, %q", code, out)
	}
	if code, out, diag := s.run("log", "none"); code != exitError || out != "" || strings.Count(diag, "\n") != 1 {
		t.Errorf("no such call: status %d, %q, %q", code, out, diag)
	}
}

func TestLog(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(2)))
	s := newShell(t)
	if code, out, diag := s.run("log"); code != 0 || out != "" || diag != "no records yet\n" {
		t.Errorf("no log yet: status %d, %q, %q", code, out, diag)
	}
	s.run("call", "--package", pkg, "look")
	s.run("call", "--package", pkg, "save")
	code, out, diag := s.run("log")
	if code != 0 || diag != "" || strings.Count(out, "\n") != 4 ||
		!strings.Contains(out, "approve    demo  by first use, sha256:") ||
		!strings.Contains(out, "violation  demo/look  readOnlyHint broken by create of /data/new.txt (operation)") ||
		!strings.Contains(out, "demo/save  ok, saved; create file /data/new.txt") {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
	logOfOneCall(t, s)
	if _, out, _ := s.run("log", "--violations"); strings.Count(out, "\n") != 1 {
		t.Errorf("violations: %q", out)
	}
	_, out, _ = s.run("log", "--tool", "save", "--json")
	var r audit.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Tool != "save" || r.Stderr != guestText {
		t.Errorf("json: %v: %q", err, out)
	}
	s.sql(`UPDATE records SET data = x'7b22' WHERE seq = 1`)
	if code, _, diag := s.run("log"); code != 0 || !strings.Contains(diag, "skipped 1") {
		t.Errorf("torn record: status %d, %q", code, diag)
	}
}

// A denied message says how its host is given, where the package requests it.
func TestUnapproved(t *testing.T) {
	denied := func(c capabilities.Capability, object string) capabilities.Denial {
		return capabilities.Denial{Capability: c, Object: object}
	}
	ds := []capabilities.Denial{
		denied(capabilities.CapOutbox, "a.example.com"), denied(capabilities.CapOutbox, "a.example.com"),
		denied(capabilities.CapOutbox, "other.example.com"), denied(capabilities.CapKV, "b.example.com"),
	}
	got := slices.Collect(unapproved(ds, tool.Requests{Outbox: []string{"a.example.com", "b.example.com"}}))
	if !slices.Equal(got, []string{"a.example.com"}) {
		t.Errorf("%q", got)
	}
}
