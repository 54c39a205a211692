package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

// sql does to the store what somebody with a database tool could.
func (s *shell) sql(text string) {
	s.t.Helper()
	c, err := sqlite3.Open("file:" + filepath.ToSlash(filepath.Join(s.state, "store.db")))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(text); err != nil {
		s.t.Fatal(err)
	}
}

// reactingWriter calls on with each line before it goes on.
type reactingWriter struct {
	bytes.Buffer
	on func(line string)
}

func (w *reactingWriter) Write(b []byte) (int, error) {
	w.on(string(b))
	return w.Buffer.Write(b)
}

// Who follows the log and is stopped while records are pruned is told so once,
// and goes on with the oldest that is left.
func TestLogFollowTellsWhatIsMissed(t *testing.T) {
	s := newShell(t)
	j, err := sqlite.Open(t.Context(), sqlite.Options{Folder: s.state})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	l := audit.New(j, audit.Options{})
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
	fallBehind := sync.OnceFunc(func() {
		write(5)
		if err := j.Prune(t.Context(), store.Prune{Now: time.Now(), RecordBytes: 1}); err != nil {
			t.Error(err)
		}
		write(3)
	})
	out := &reactingWriter{on: func(line string) {
		fallBehind()
		if strings.Contains(line, "w-8") {
			cancel()
		}
	}}
	var diag bytes.Buffer
	code := run(ctx, []string{"--state", s.state, "log", "--follow"}, strings.NewReader(""), out, &diag, nil)
	if want := "note: records were pruned before they were read\n"; code != 0 || diag.String() != want {
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

// What somebody changes in the store's file is found, and named; what was noted
// elsewhere finds more.
func TestLogVerify(t *testing.T) {
	s := newShell(t)
	if code, out, _ := s.run("log", "--verify"); code != 0 || out != "checked 0 records in 0 chains: none was changed, removed or put elsewhere\n" {
		t.Errorf("nothing yet: status %d, %q", code, out)
	}
	pkg := newPackage(t, guest(create(), say(2)))
	for range 2 {
		s.run("call", "--package", pkg, "look")
		s.run("call", "--package", pkg, "save")
	}
	code, out, diag := s.run("log", "--verify")
	if code != 0 || out != "checked 7 records in 4 chains: none was changed, removed or put elsewhere\n" || diag != "" {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
	_, heads, _ := s.run("log", "--verify", "--json")
	var v audit.Verdict
	if err := json.Unmarshal([]byte(heads), &v); err != nil || len(v.Heads) != 4 || v.Records != 7 || len(v.Faults) != 0 {
		t.Errorf("%v: %s", err, heads)
	}
	noted := filepath.Join(t.TempDir(), "heads.json")
	if err := os.WriteFile(noted, []byte(heads), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, diag := s.run("log", "--verify", "--heads", noted); code != 0 {
		t.Errorf("status %d, %q", code, diag)
	}
	// A violation is made one of another hint.
	s.sql(`UPDATE records SET data = CAST(replace(CAST(data AS TEXT), 'readOnlyHint', 'idempotentHint') AS BLOB) WHERE seq = 2`)
	code, out, diag = s.run("log", "--verify")
	if want := regexp.MustCompile(`^writer \S+: record 2 was changed: it hashes to \S+, and was written with \S+\n$`); code != exitError || !want.MatchString(out) ||
		!strings.Contains(diag, "1 faults in 7 records of 4 chains") {
		t.Errorf("changed: status %d, %q, %q", code, out, diag)
	}
	// A whole chain goes, head and all: only what was noted tells.
	s.sql(`UPDATE records SET data = CAST(replace(CAST(data AS TEXT), 'idempotentHint', 'readOnlyHint') AS BLOB) WHERE seq = 2`)
	s.sql(`DELETE FROM records WHERE writer = 1; DELETE FROM writers WHERE id = 1`)
	if code, out, _ := s.run("log", "--verify"); code != 0 {
		t.Errorf("status %d, %q", code, out)
	}
	if code, out, _ := s.run("log", "--verify", "--heads", noted); code != exitError || !strings.Contains(out, "is gone with its whole chain") {
		t.Errorf("status %d, %q", code, out)
	}
	if code, _, diag := s.run("log", "--heads", noted); code != exitError || strings.Count(diag, "\n") != 1 {
		t.Errorf("heads alone: status %d, %q", code, diag)
	}
	if code, _, diag := s.run("log", "--verify", "--heads", filepath.Join(s.state, "store.db")); code != exitError || strings.Count(diag, "\n") != 1 {
		t.Errorf("no heads: status %d, %q", code, diag)
	}
}
