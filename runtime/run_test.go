package runtime

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

func runSpec(t *testing.T, module []byte, readOnlyDir bool) (RunSpec, string, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	return RunSpec{
		Name: "m", Module: module, Stdin: bytes.NewReader(nil), Stdout: &stdout, Stderr: &stdout,
		Dirs:   []RunDir{{Host: dir, Guest: "/data", ReadOnly: readOnlyDir}},
		Limits: tool.Limits{Memory: 1 << 20, Timeout: time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
	}, dir, &stdout
}

func TestRunCommitsOnStatusZeroOnly(t *testing.T) {
	write := w.Seq(open("new", oflagCreate, rightWrite), write(1, 5))
	for _, c := range []struct {
		body     []byte
		readOnly bool
		exit     uint32
		made     bool
	}{
		{body: write, made: true},
		{body: w.Seq(write, exit(3)), exit: 3},
		{body: write, readOnly: true},
	} {
		s, dir, stdout := runSpec(t, command("new", "hello", c.body), c.readOnly)
		status, err := newEngine(t, Observer{}).Run(context.Background(), s)
		if err != nil || status != c.exit || stdout.String() != "hello" {
			t.Errorf("status %d, %v, output %q", status, err, stdout)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); (err == nil) != c.made {
			t.Errorf("exit %d, read-only %v: made %v", c.exit, c.readOnly, err == nil)
		}
	}
}

func TestRunIsStopped(t *testing.T) {
	s, dir, _ := runSpec(t, command("new", "", w.Seq(open("new", oflagCreate, rightWrite), w.Forever)), false)
	if _, err := newEngine(t, Observer{}).Run(context.Background(), s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	untouched(t, dir)
	s, _, _ = runSpec(t, command("", "", w.Unreachable), false)
	var trap *TrapError
	if _, err := newEngine(t, Observer{}).Run(context.Background(), s); !errors.As(err, &trap) {
		t.Errorf("error %v", err)
	}
}
