package main

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/config"
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
	for _, want := range []string{`"destructiveHint":false`, guestText, `"dev.sandboxd/violation":{"hint":"readOnlyHint"`, "Retrying will not help"} {
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

// The environment goes before the configuration, and that before the defaults.
func TestCollect(t *testing.T) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	for name, c := range map[string]struct {
		env     []string
		process config.Process
		percent int
		limit   int64
	}{
		"defaults":      {nil, config.Process{}, 400, config.Default().Limits.Memory},
		"configuration": {nil, config.Process{GCPercent: 150, MemoryLimit: 1 << 32}, 150, 1 << 32},
		"environment":   {[]string{"GOGC=77", "GOMEMLIMIT=1GiB"}, config.Process{GCPercent: 150, MemoryLimit: 1 << 32}, 77, 1 << 30},
	} {
		debug.SetGCPercent(77) // as Go has read it
		debug.SetMemoryLimit(1 << 30)
		conf := config.Default()
		conf.Process = c.process
		(&app{env: c.env}).collect(conf)
		if p, l := debug.SetGCPercent(77), debug.SetMemoryLimit(-1); p != c.percent || l != c.limit {
			t.Errorf("%s: %d, %d", name, p, l)
		}
	}
}
