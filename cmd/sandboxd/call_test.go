package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
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
			`"outcome":"ok","result":{"content":[{"text":"said by the guest","type":"text"}]},"violation":null}`,
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
	if code != 0 || !strings.Contains(out, guestText) || !strings.Contains(diag, "ok: dry run, nothing saved; create file /data/new.txt") {
		t.Errorf("status %d, stdout %q, stderr %q", code, out, diag)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("on disk: %v, %v", left, err)
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

func TestLog(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(2)))
	s := newShell(t)
	if code, out, _ := s.run("log"); code != 0 || out != "" {
		t.Errorf("no log yet: status %d, %q", code, out)
	}
	s.run("call", "--package", pkg, "look")
	s.run("call", "--package", pkg, "save")
	code, out, diag := s.run("log")
	if code != 0 || diag != "" || strings.Count(out, "\n") != 3 ||
		!strings.Contains(out, "violation  demo/look  readOnlyHint broken by create of /data/new.txt (operation)") ||
		!strings.Contains(out, "demo/save  ok, saved; create file /data/new.txt") {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
	if _, out, _ := s.run("log", "--violations"); strings.Count(out, "\n") != 1 {
		t.Errorf("violations: %q", out)
	}
	_, out, _ = s.run("log", "--tool", "save", "--json")
	var r audit.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Tool != "save" || r.Stderr != guestText {
		t.Errorf("json: %v: %q", err, out)
	}
	f, err := os.OpenFile(filepath.Join(s.state, audit.FileName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"torn`)
	f.Close()
	if code, _, diag := s.run("log"); code != 0 || !strings.Contains(diag, "skipped 1") {
		t.Errorf("torn log: status %d, %q", code, diag)
	}
}
