package demo_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/demo"
)

// TestDemo is the main job from end to end: every case of every bundled guest.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all guests")
	}
	cache := t.TempDir()
	var lines bytes.Buffer
	sum, err := demo.Run(t.Context(), demo.Options{Out: &lines, JSON: true, Cache: cache})
	if err != nil || sum.Wrong != 0 || sum.Cases < 30 || sum.Passed == 0 || sum.Stopped == 0 || sum.Held == 0 {
		t.Errorf("%+v, %v\n%s", sum, err, lines.String())
	}
	if n := strings.Count(lines.String(), "\n"); n != sum.Cases {
		t.Errorf("%d lines of %d cases", n, sum.Cases)
	}
	for line := range strings.Lines(lines.String()) {
		checkLine(t, line)
	}
	var table bytes.Buffer
	again, err := demo.Run(t.Context(), demo.Options{Out: &table, Cache: cache})
	if err != nil || again != sum {
		t.Errorf("second run: %+v, %v, first %+v\n%s", again, err, sum, table.String())
	}
	for _, want := range []string{"declares", "left on disk", "The client was told:", "The log says:", `"type":"violation"`, "nothing left behind"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, table.String())
		}
	}
}

// checkLine holds a line of JSON against the contract's fields.
func checkLine(t *testing.T, line string) {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	fields := []string{"package", "tool", "hint", "honest", "attempted", "outcome", "left_behind"}
	for _, f := range fields {
		if _, ok := r[f]; !ok {
			t.Errorf("no %s in %s", f, line)
		}
	}
	if len(r) != len(fields) {
		t.Errorf("further fields in %s", line)
	}
	if r["honest"] == false && (r["outcome"] != "violation" || r["left_behind"] != false) {
		t.Errorf("a lie that was not stopped: %s", line)
	}
}
