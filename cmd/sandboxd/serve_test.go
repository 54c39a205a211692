package main

import (
	"strings"
	"testing"
)

func TestServeStdio(t *testing.T) {
	s := newShell(t)
	s.stdin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"save"}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"look"}}
`
	code, out, diag := s.run("serve", "--stdio", newPackage(t, guest(create(), say(1))))
	if code != 0 || strings.Count(diag, "\n") != 2 || !strings.Contains(diag, "tool broke a hint") || strings.Count(out, "\n") != 4 {
		t.Fatalf("status %d, %q, %q", code, out, diag)
	}
	for _, want := range []string{`"destructiveHint":true`, guestText, `"dev.sandboxd/violation":{"hint":"readOnlyHint"`, "Retrying will not help"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

func TestServeCollision(t *testing.T) {
	pkg := newPackage(t, guest(say(1)))
	code, _, diag := newShell(t).run("serve", "--stdio", pkg, pkg)
	if code != exitError || !strings.Contains(diag, "is named twice") {
		t.Errorf("status %d, %q", code, diag)
	}
}

// The error of a tool that wrote has the note that nothing was saved once: the
// engine and the server both see to it.
func TestNotSavedOnce(t *testing.T) {
	for name, module := range map[string][]byte{
		"with a message": guest(create(), say(1), exit(1)),
		"without":        guest(create(), exit(1)),
	} {
		s := newShell(t)
		s.stdin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"save"}}
`
		if _, out, _ := s.run("serve", "--stdio", newPackage(t, module)); strings.Count(out, "not saved") != 1 {
			t.Errorf("%s: %s", name, out)
		}
	}
}
