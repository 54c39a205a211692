package main

import (
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/guests"
)

// The demo stays up and lists the tools of every package that loads, each given
// what the demo gives it: relaylink its relaxations and its outbox.
func TestDemoServe(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all guests")
	}
	s := newShell(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	url, stop := s.serving("packages are at ", "demo", "--serve", "--http", "127.0.0.1:0")
	client, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for d, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed[d.Name] = true
	}
	for _, name := range guests.Names() {
		cases, err := guests.Cases(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if c.Tool != "" && !listed[c.Tool] {
				t.Errorf("%s of %s is not listed", c.Tool, name)
			}
		}
	}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		isError   bool
	}{
		{"rename_contact", map[string]any{"id": "c1", "nickname": "Benny"}, false},
		{"draft_package", map[string]any{"to": "ben@example.com", "subject": "Plan", "body": "See below."}, false},
		{"confirm_send", map[string]any{"id": "d1"}, false},
		{"open_journal", map[string]any{"day": "2026-11-03"}, true},
	} {
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.arguments})
		if err != nil || res.IsError != c.isError {
			t.Errorf("%s: %+v, %v", c.tool, res, err)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if left, err := filepath.Glob(filepath.Join(temp, "sandboxd-demo-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
