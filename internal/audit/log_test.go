package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

var (
	info      = runtime.CallInfo{ID: "c1", Package: "notes", Tool: "add_note"}
	violation = capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpWrite, Object: "/data/a", Phase: capabilities.PhaseOperation}
	denial    = capabilities.Denial{Capability: capabilities.CapLink, Operation: capabilities.OpCreate, Object: "/data/l", Errno: capabilities.EPERM}
)

func open(t *testing.T, state string) *audit.Log {
	t.Helper()
	l, err := audit.Open(state, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func read(t *testing.T, state string, f audit.Filter) (rs []audit.Record, skipped int) {
	t.Helper()
	skipped, err := audit.Read(state, f, func(r audit.Record) error {
		rs = append(rs, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rs, skipped
}

func TestRecords(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	o := open(t, state).Observer()
	o.Violation(info, violation)
	if rs, _ := read(t, state, audit.Filter{}); len(rs) != 1 || rs[0].Type != audit.TypeViolation {
		t.Fatalf("records when the observer returns: %+v", rs)
	}
	o.Denial(info, denial)
	o.CallEnd(info, &runtime.Result{
		CallID: "c1", Outcome: runtime.Violation, Duration: 1500 * time.Microsecond,
		Effects: []capabilities.Effect{{Verb: capabilities.Create, Kind: capabilities.KindFile, Object: "/data/b", Bytes: 3}},
		Stderr:  []byte(strings.Repeat("x", 5000) + "log \x1b[31m\u202e"), Err: errors.New("why"),
		DroppedMeta: 2, DroppedNotes: 3,
	})
	o.CallEnd(runtime.CallInfo{ID: "c2", Package: "notes", Tool: "list_notes"}, &runtime.Result{Outcome: runtime.OK, Committed: true})

	rs, skipped := read(t, state, audit.Filter{})
	if len(rs) != 4 || skipped != 0 {
		t.Fatalf("records: %+v, skipped %d", rs, skipped)
	}
	if r := rs[0]; *r.Hint != capabilities.ReadOnlyHint || r.Operation != "write" || r.Object != "/data/a" || r.Phase != "operation" || r.CallID != "c1" {
		t.Errorf("violation: %+v", r)
	}
	if r := rs[1]; r.Type != audit.TypeDenial || r.Capability != "link" || r.Errno != "EPERM" {
		t.Errorf("denial: %+v", r)
	}
	if r := rs[2]; r.Outcome != runtime.Violation || *r.Committed || *r.DurationMS != 1.5 || len(r.Effects) != 1 ||
		len(r.Stderr) != 4096 || !r.StderrCut || r.Error != "why" || r.DroppedMeta != 2 || r.DroppedNotes != 3 {
		t.Errorf("call: %+v", r)
	}
	if rs, _ := read(t, state, audit.Filter{Violations: true}); len(rs) != 1 {
		t.Errorf("violations: %+v", rs)
	}
	if rs, _ := read(t, state, audit.Filter{Tool: "list_notes"}); len(rs) != 1 || !*rs[0].Committed {
		t.Errorf("by tool: %+v", rs)
	}
	b, err := os.ReadFile(filepath.Join(state, audit.FileName))
	if err != nil || bytes.ContainsAny(b, "\x1b\u202e") {
		t.Errorf("the file holds control characters: %v", err)
	}
}

func TestPrivate(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no modes")
	}
	state := filepath.Join(t.TempDir(), "state")
	open(t, state)
	for path, want := range map[string]fs.FileMode{state: 0o700, filepath.Join(state, audit.FileName): 0o600} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, i.Mode(), err, want)
		}
	}
}

// Several logs on one folder, as several processes have them, tear no line.
func TestSeveralWriters(t *testing.T) {
	state := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		o := open(t, state).Observer()
		for g := range 4 {
			wg.Go(func() {
				for i := range 25 {
					c := runtime.CallInfo{ID: fmt.Sprint(w, g, i), Tool: "t"}
					o.CallEnd(c, &runtime.Result{Outcome: runtime.OK, Stderr: bytes.Repeat([]byte("x"), i*100)})
				}
			})
		}
	}
	wg.Wait()
	rs, skipped := read(t, state, audit.Filter{})
	ids := map[string]bool{}
	for _, r := range rs {
		ids[r.CallID] = true
	}
	if len(rs) != 400 || len(ids) != 400 || skipped != 0 {
		t.Errorf("%d records, %d calls, %d skipped", len(rs), len(ids), skipped)
	}
}

// What a crash tore off is skipped, and what comes after it is not lost.
func TestTornLine(t *testing.T) {
	state := t.TempDir()
	l := open(t, state)
	l.Observer().Violation(info, violation)
	path := filepath.Join(state, audit.FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, b[:len(b)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if rs, skipped := read(t, state, audit.Filter{}); len(rs) != 1 || skipped != 1 {
		t.Errorf("torn: %d records, %d skipped", len(rs), skipped)
	}
	open(t, state).Observer().Denial(info, denial)
	if rs, skipped := read(t, state, audit.Filter{}); len(rs) != 2 || skipped != 1 {
		t.Errorf("written on: %d records, %d skipped", len(rs), skipped)
	}
}

// Two logs on one file, as two processes have them: when one dies in the middle
// of a line, the other's next record is not lost with it.
func TestTornByAnother(t *testing.T) {
	state := t.TempDir()
	mine, dying := open(t, state).Observer(), open(t, state).Observer()
	mine.Violation(info, violation)
	dying.Denial(info, denial)
	path := filepath.Join(state, audit.FileName)
	cut := func() {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(len(b)-10)); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	mine.Denial(info, denial)
	if rs, skipped := read(t, state, audit.Filter{}); len(rs) != 2 || skipped != 1 {
		t.Errorf("written on: %d records, %d skipped", len(rs), skipped)
	}
	// Between its look and its write the other died: both are on one line.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(b, []byte("\n"))
	glued := slices.Concat(first[:len(first)/2], first, []byte("\n"))
	if err := os.WriteFile(path, glued, 0o600); err != nil {
		t.Fatal(err)
	}
	if rs, skipped := read(t, state, audit.Filter{}); len(rs) != 1 || skipped != 1 || rs[0].Type != audit.TypeViolation {
		t.Errorf("glued: %+v, %d skipped", rs, skipped)
	}
}

func TestLoadFailed(t *testing.T) {
	state := t.TempDir()
	l := open(t, state)
	l.LoadFailed(&runtime.LoadError{Package: "notes", Phase: "link", Err: errors.New("why"), Log: []byte("panic: x\n")})
	rs, _ := read(t, state, audit.Filter{})
	if len(rs) != 1 || rs[0].Type != audit.TypeLoad || rs[0].Package != "notes" || rs[0].Phase != "link" || rs[0].Error != "why" || rs[0].Stderr != "panic: x\n" {
		t.Errorf("%+v", rs)
	}
	if rs, _ := read(t, state, audit.Filter{CallID: "c1"}); len(rs) != 0 {
		t.Errorf("records of a call: %+v", rs)
	}
}

// A package that was admitted and a configuration that was read have records of
// no call.
func TestEvents(t *testing.T) {
	state := t.TempDir()
	l := open(t, state)
	l.PackageAdmitted("notes", "first use", "sha256:1")
	l.ConfigReloaded(nil)
	l.ConfigReloaded(errors.New("sandboxd.yaml:3: " + strings.Repeat("x", 5000)))
	rs, _ := read(t, state, audit.Filter{})
	if len(rs) != 3 {
		t.Fatalf("%+v", rs)
	}
	if r := rs[0]; r.Type != audit.TypeApprove || r.Package != "notes" || r.By != "first use" || r.ModuleDigest != "sha256:1" || r.Accepted != nil {
		t.Errorf("admitted: %+v", r)
	}
	if r := rs[1]; r.Type != audit.TypeConfig || !*r.Accepted || r.Error != "" || r.Package != "" {
		t.Errorf("reloaded: %+v", r)
	}
	if r := rs[2]; r.Type != audit.TypeConfig || *r.Accepted || len(r.Error) != 4096 {
		t.Errorf("refused: %+v", r)
	}
}

func TestWriteErrorsAreCounted(t *testing.T) {
	l := open(t, t.TempDir())
	var got []error
	l.OnError(func(err error) { got = append(got, err) })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Observer().Violation(info, violation)
	if l.Lost() != 1 || len(got) != 1 || !errors.Is(got[0], fs.ErrClosed) {
		t.Errorf("lost %d, errors %v", l.Lost(), got)
	}
}

func TestReadMissing(t *testing.T) {
	if rs, skipped := read(t, filepath.Join(t.TempDir(), "none"), audit.Filter{}); len(rs) != 0 || skipped != 0 {
		t.Errorf("%v, %d", rs, skipped)
	}
}

func TestFollow(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var ids []string
	go func() {
		l, err := audit.Open(state, audit.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		o := l.Observer()
		for i := range 3 {
			o.Violation(runtime.CallInfo{ID: fmt.Sprint(i)}, violation)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	_, err := audit.Follow(ctx, state, audit.Filter{}, func(r audit.Record) error {
		if ids = append(ids, r.CallID); len(ids) == 3 {
			cancel()
		}
		return nil
	}, func() { t.Error("told that records are gone") })
	if err != nil || !slices.Equal(ids, []string{"0", "1", "2"}) {
		t.Errorf("followed %v, %v", ids, err)
	}
}
