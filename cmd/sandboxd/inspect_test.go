package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func TestInspect(t *testing.T) {
	pkg := newPackage(t, guest(create()))
	code, out, diag := newShell(t).run("inspect", pkg)
	if code != 0 || diag != "" {
		t.Fatalf("status %d, %q", code, diag)
	}
	golden(t, "inspect.txt", digests.ReplaceAllString(out, "sha256:DIGEST"))
	code, out, diag = newShell(t).run("inspect", pkg, "--json")
	if code != 0 || diag != "" || !json.Valid([]byte(out)) {
		t.Fatalf("status %d, %q, %q", code, out, diag)
	}
	golden(t, "inspect.json", digests.ReplaceAllString(out, "sha256:DIGEST"))
}

func TestProve(t *testing.T) {
	volume := func(a capabilities.Access) tool.Requests {
		return tool.Requests{Volumes: []tool.VolumeRequest{{Name: "data", Access: a}}}
	}
	http := func(methods ...string) tool.Requests {
		return tool.Requests{HTTP: []tool.HTTPRequest{{Host: "example.com", Methods: methods}}}
	}
	for name, c := range map[string]struct {
		r    tool.Requests
		want proof
	}{
		"nothing":        {tool.Requests{}, proof{ReadOnly: true, Closed: true}},
		"volume":         {volume(capabilities.NoAccess), proof{Closed: true}},
		"volume, write":  {volume(capabilities.WriteAccess), proof{Closed: true}},
		"volume, read":   {volume(capabilities.ReadAccess), proof{ReadOnly: true, Closed: true}},
		"keys":           {tool.Requests{KV: true}, proof{Closed: true}},
		"database":       {tool.Requests{SQL: []string{"main"}}, proof{Closed: true}},
		"outbox":         {tool.Requests{Outbox: []string{"example.com"}}, proof{}},
		"service":        {tool.Requests{Services: []string{"db"}}, proof{}},
		"http, safe":     {http("GET", "HEAD"), proof{ReadOnly: true}},
		"http, unsafe":   {http("GET", "POST"), proof{}},
		"http, any":      {http(), proof{}},
		"http, unlisted": {http("get"), proof{}},
	} {
		if got := prove(c.r); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFlows(t *testing.T) {
	volumes := []tool.VolumeRequest{{Name: "data", Path: "/data"}}
	define := func(name string, c capabilities.Claim) toolReport {
		return newToolReport(tool.Definition{Name: name, Claim: c}, volumes)
	}
	ts := []toolReport{
		define("save", capabilities.Claim{OpenWorld: capabilities.False}),
		define("look", capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}),
		define("send", capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.True}),
	}
	if got, want := flows(ts), []flow{{From: "save", To: "send", Volume: "data"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
