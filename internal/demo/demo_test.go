package demo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/demo"
	"github.com/sandboxd/sandboxd/runtime"
)

// TestDemo is the main job from end to end: every case of every bundled guest.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all guests")
	}
	cache := demo.SharedCache
	var lines bytes.Buffer
	sum, err := demo.Run(t.Context(), demo.Options{Out: &lines, JSON: true, Cache: cache})
	if err != nil || sum.Wrong != 0 || sum.Cases < 30 || sum.Passed == 0 || sum.Stopped == 0 || sum.Held == 0 {
		t.Errorf("%+v, %v\n%s", sum, err, lines.String())
	}
	if n := strings.Count(lines.String(), "\n"); n != sum.Cases {
		t.Errorf("%d lines of %d cases", n, sum.Cases)
	}
	tried := map[string]bool{}
	for line := range strings.Lines(lines.String()) {
		tried[checkLine(t, line)] = true
	}
	// Each hint is kept by some and broken by others.
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		for _, honest := range []string{"true", "false"} {
			if !tried[hint+" "+honest] {
				t.Errorf("no case of %s that is honest: %s", hint, honest)
			}
		}
	}
	var table bytes.Buffer
	again, err := demo.Run(t.Context(), demo.Options{Out: &table, Cache: cache})
	if err != nil || again != sum {
		t.Errorf("second run: %+v, %v, first %+v\n%s", again, err, sum, table.String())
	}
	for line := range strings.Lines(table.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 120 && !strings.HasPrefix(line, `  {"time":`) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{
		"readOnlyHint: who", "destructiveHint: who", "idempotentHint: who", "openWorldHint: who", "Escapes", "declares", "left behind",
		"stopped: create of /data/", "stopped: at commit, /data/notes.json#/0/pinned: ", "stopped: at replay, /data/checked.txt: ",
		"stopped: send of mail.example.com", "ok (time-dependent)", "+message to mail.ex",
		"The client was told of open_journal: ", "The log says of ", `"type":"violation"`, "nothing left behind",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, table.String())
		}
	}
}

// TestDemoOnEveryStrategy: cases come to the same whether instances are put back, made
// when a call needs one, or made ahead.
func TestDemoOnEveryStrategy(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all guests")
	}
	verdicts := map[runtime.Strategy]string{}
	for _, s := range runtime.Strategies() {
		var lines bytes.Buffer
		sum, err := demo.Run(t.Context(), demo.Options{Out: &lines, JSON: true, Cache: demo.SharedCache, Strategy: s})
		if err != nil || sum.Wrong != 0 {
			t.Errorf("%s: %+v, %v", s, sum, err)
		}
		for line := range strings.Lines(lines.String()) {
			var r demo.Result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			verdicts[s] += fmt.Sprintln(r.Package, r.Tool, r.Outcome, r.LeftBehind, r.Honest != nil)
		}
	}
	for s, got := range verdicts {
		if want := verdicts[runtime.StrategyImage]; got != want {
			t.Errorf("%s:\n%s\nimage:\n%s", s, got, want)
		}
	}
}

// A reader that goes away leaves no folder behind.
func TestDemoClearsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("builds guests")
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	_, err := demo.Run(t.Context(), demo.Options{Out: gone{}, JSON: true, Cache: demo.SharedCache})
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(filepath.Join(temp, "sandboxd-demo-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// gone is a pipe whose reader went away.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// Without Go the error is short.
func TestDemoWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := demo.Run(t.Context(), demo.Options{Out: gone{}, Cache: t.TempDir()})
	if !errors.Is(err, build.ErrNoToolchain) || len(err.Error()) > 150 || !strings.Contains(err.Error(), "https://go.dev/dl") {
		t.Errorf("%v", err)
	}
}

// checkLine holds a line of JSON against the contract's fields, and returns the
// hint on trial and whether it is kept.
func checkLine(t *testing.T, line string) string {
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
	return fmt.Sprint(r["hint"], " ", r["honest"])
}
