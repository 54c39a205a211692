package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func TestInspect(t *testing.T) {
	pkg := newPackage(t, guest(create()))
	s := newShell(t)
	code, out, diag := s.run("inspect", pkg)
	if code != 0 || diag != "" {
		t.Fatalf("status %d, %q", code, diag)
	}
	same := func(out string) string {
		return strings.ReplaceAll(digests.ReplaceAllString(out, "sha256:DIGEST"), s.state, "STATE")
	}
	golden(t, "inspect.txt", same(out))
	code, out, diag = s.run("inspect", pkg, "--json")
	if code != 0 || diag != "" || !json.Valid([]byte(out)) {
		t.Fatalf("status %d, %q, %q", code, out, diag)
	}
	golden(t, "inspect.json", same(out))
	if _, err := os.Stat(s.state); err == nil {
		t.Error("made the state folder")
	}
}

// inspect names the folder that a managed volume has in fact, or the given one.
func TestInspectNamesVolumeFolders(t *testing.T) {
	pkg, data := newPackage(t, guest(create(), say(1))), t.TempDir()
	s := newShell(t)
	if code, _, diag := s.run("call", "-p", pkg, "save"); code != 0 {
		t.Fatalf("status %d, %q", code, diag)
	}
	for _, args := range [][]string{{}, {"--volume", "data=" + data}} {
		code, out, diag := s.run(append([]string{"inspect", pkg, "--json"}, args...)...)
		var r report
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Volumes) != 1 {
			t.Fatalf("status %d, %v, %q, %q", code, err, out, diag)
		}
		v := r.Volumes[0]
		if v.Managed && v.Store != "demo/data" || v.Managed != (v.Folder == "") || !v.Managed && v.Folder != data {
			t.Errorf("%v: %+v", args, v)
		}
	}
}

// What could never be called is refused without a call, with the place in the
// manifest where that is what is wrong.
func TestModulesThatCannotBeCalled(t *testing.T) {
	memory := [2]uint32{1, 1}
	library := w.Module{Memory: memory, Funcs: []w.Func{
		{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(0)},
		{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(0)},
	}}.Encode()
	foreign := w.Module{Memory: memory, Funcs: []w.Func{{Import: "env", Name: "launch"}, {Name: "_start"}}}.Encode()
	program := guest(say(1))
	for name, c := range map[string]struct {
		module    []byte
		abi, want string
	}{
		"a library as a command": {library, "command", "tool.yaml:4:6: abi: the module exports sandboxd_call and no _start; write abi: reactor"},
		"a program as a reactor": {program, "reactor", "tool.yaml:4:6: abi: the module exports _start and no sandboxd_call; write abi: command"},
		"a foreign import":       {foreign, "command", "launch"},
	} {
		pkg := newPackage(t, c.module)
		text := strings.Replace(manifest, "abi: command", "abi: "+c.abi, 1)
		if err := os.WriteFile(filepath.Join(pkg, "tool.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"inspect " + pkg, "build " + pkg, "call save -p " + pkg, "serve --stdio " + pkg} {
			s := newShell(t)
			code, out, diag := s.run(strings.Fields(line)...)
			if code != exitError || out != "" || strings.Count(diag, "\n") != 1 || !strings.Contains(diag, c.want) {
				t.Errorf("%s: %s: status %d, %q, %q", name, line, code, out, diag)
			}
			command, _, _ := strings.Cut(line, " ")
			if _, out, _ := s.run("log"); strings.Contains(out, "load       demo  does not load: link") != (command == "call" || command == "serve") {
				t.Errorf("%s: log after %s: %q", name, command, out)
			}
		}
	}
}

func TestFlows(t *testing.T) {
	requests := tool.Requests{KV: true, Volumes: []tool.VolumeRequest{{Name: "data", Path: "/data"}}}
	define := func(name string, c capabilities.Claim) toolReport {
		return newToolReport(runtime.ToolsOf(requests, []tool.Definition{{Name: name, Claim: c}})[0])
	}
	ts := []toolReport{
		define("save", capabilities.Claim{OpenWorld: capabilities.False}),
		define("look", capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}),
		define("send", capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.True}),
	}
	if got, want := flows(ts), []flow{{From: "save", To: "send", Keys: true}, {From: "save", To: "send", Volume: "data"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
