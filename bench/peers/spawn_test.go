package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// What a command leaves behind is waited for, and its processor time is counted,
// although the command itself does not wait for it.
func TestSpawnWaitsForOrphans(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	before, err := measure.Self()
	if err != nil {
		t.Fatal(err)
	}
	// The inner shell uses some processor time after the outer one has ended.
	const script = `cat; (exec >&- 2>&- <&-; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) &`
	answer, err := spawn([]byte("asked"), []string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	if string(answer) != "asked" {
		t.Errorf("answer %q", answer)
	}
	after, err := measure.Self()
	if err != nil {
		t.Fatal(err)
	}
	if after-before < 20*time.Millisecond {
		t.Errorf("%v of processor time were counted: the orphan's is missing", after-before)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
}

// A command that fails is an error, not an empty answer.
func TestSpawnFailure(t *testing.T) {
	_, err := spawn(nil, []string{"sh", "-c", "exit 3"})
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
}

func TestCheck(t *testing.T) {
	w := work{"echo", json.RawMessage(`{"text":"hello"}`), "hello"}
	for _, c := range []struct {
		answer string
		n      int
		ok     bool
	}{
		{"hello", 0, true},
		{`{"content":[{"type":"text","text":"hello"}]}`, 0, true},
		{`{"content":[{"type":"text","text":"hullo"}]}`, 0, false},
		{`{"content":[]}`, 0, false},
		{"hell", 0, false},
		{"hell", 1, false}, // too short to be the answer
	} {
		if err := w.check([]byte(c.answer), c.n); (err == nil) != c.ok {
			t.Errorf("answer %q of call %d: %v", c.answer, c.n, err)
		}
	}
}
