package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

// reactingWriter calls on with each line before it goes on.
type reactingWriter struct {
	bytes.Buffer
	on func(line string)
}

func (w *reactingWriter) Write(b []byte) (int, error) {
	w.on(string(b))
	return w.Buffer.Write(b)
}

// Who follows the log and is stopped while more files are rotated than are kept
// is told so once, and goes on with the oldest.
func TestLogFollowTellsWhatIsMissed(t *testing.T) {
	s := newShell(t)
	l, err := audit.Open(s.state, audit.Options{MaxSize: 1, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	broken := capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpWrite, Object: "/data/a", Phase: capabilities.PhaseOperation}
	written := 0
	write := func(n int) {
		for range n {
			l.Observer().Violation(runtime.CallInfo{ID: fmt.Sprint("w-", written)}, broken)
			written++
		}
	}
	write(1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fallBehind := sync.OnceFunc(func() { write(8) })
	out := &reactingWriter{on: func(line string) {
		fallBehind()
		if strings.Contains(line, "w-8") {
			cancel()
		}
	}}
	var diag bytes.Buffer
	code := run(ctx, []string{"--state", s.state, "log", "--follow"}, strings.NewReader(""), out, &diag, nil)
	if want := "note: records may have been rotated away before they were read\n"; code != 0 || diag.String() != want {
		t.Errorf("status %d, %q, want %q", code, diag.String(), want)
	}
	var ids []string
	for line := range strings.Lines(out.String()) {
		ids = append(ids, line[strings.LastIndex(line, "  ")+2:])
	}
	if got := strings.Join(ids, ""); got != "w-0\nw-6\nw-7\nw-8\n" {
		t.Errorf("printed %q", got)
	}
}
