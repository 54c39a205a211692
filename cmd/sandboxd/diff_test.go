package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
)

// A difference is printed with nothing in it that a terminal obeys, whatever the
// guest wrote.
func TestPrintEffects(t *testing.T) {
	var diag strings.Builder
	a := &app{stderr: &diag}
	left := int64(5)
	a.printEffects(&undo.Diff{
		Items: []undo.Item{
			{
				Effect: capabilities.Effect{Verb: capabilities.Create, Kind: capabilities.KindFile, Object: "/data/a\x1b[2J", Bytes: 5},
				Left:   &left, Text: "--- /dev/null\n+++ /data/a\n@@ -0,0 +1 @@\n+\x1b[31mred\u202e\n",
			},
		},
		More: 2,
	})
	const want = "create \"/data/a\\x1b[2J\" (5 bytes)\n--- /dev/null\n+++ /data/a\n@@ -0,0 +1 @@\n+\\x1b[31mred\\u202e\nand 2 more\n"
	if diag.String() != want {
		t.Errorf("%q, want %q", diag.String(), want)
	}
}

// The JSON form of a dry run has the differences, that of a call has none.
func TestDryRunJSON(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(1)))
	for dry, want := range map[bool]string{true: `{"items":[{"verb":"create","kind":"file","object":"/data/new.txt","bytes":0,"left":0}]}`, false: ""} {
		args := []string{"call", "-p", pkg, "--json", "save"}
		if dry {
			args = append(args, "--dry-run")
		}
		_, out, _ := newShell(t).run(args...)
		var r struct{ Diff json.RawMessage }
		if err := json.Unmarshal([]byte(out), &r); err != nil || string(r.Diff) != want {
			t.Errorf("dry run %t: %s, %v", dry, out, err)
		}
	}
}
