package audit_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

func TestLogTo(t *testing.T) {
	var b bytes.Buffer
	level := new(slog.LevelVar)
	o := audit.LogTo(slog.New(term.Handler(&b, "text", level)))
	c := info
	c.Principal = "alice"
	end := func(outcome runtime.Outcome, stderr string, err error) {
		o.CallEnd(c, &runtime.Result{Outcome: outcome, Stderr: []byte(stderr), Err: err})
	}
	disk := errors.New("disk\x1b[2J")
	o.Violation(c, violation)
	end(runtime.Violation, "not shown", disk)
	end(runtime.OK, "", disk)
	level.Set(slog.LevelDebug)
	end(runtime.OK, "panic: \x1b[31m\u202e\nx", nil)
	end(runtime.OK, strings.Repeat("x", 5000), nil)
	end(runtime.OK, "", nil)

	const of = ` call=c1 principal=alice package=notes tool=add_note `
	want := []string{
		`level=WARN msg="tool broke a hint that it declares"` + of + `hint=readOnlyHint operation=write object=/data/a phase=operation`,
		`level=WARN msg="fault of the host around a call that ended well"` + of + `error="disk\x1b[2J"`,
		`level=DEBUG msg="guest wrote to its standard error"` + of + `stderr="panic: \x1b[31m\u202e\nx" cut=false`,
		`level=DEBUG msg="guest wrote to its standard error"` + of + `stderr=` + strings.Repeat("x", 4096) + ` cut=true`,
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, line := range lines {
		if _, got, _ := strings.Cut(line, " "); got != want[i] {
			t.Errorf("line %d: %s\nwant: %s", i, got, want[i])
		}
	}
}
