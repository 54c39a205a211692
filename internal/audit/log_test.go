package audit_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime"
)

func TestRecords(t *testing.T) {
	j := newJournal()
	l := start(t, j, audit.Options{Every: never})
	o := l.Observer()
	o.Violation(info, violation)
	if rs, _ := read(t, j, audit.Filter{}); len(rs) != 1 || rs[0].Type != audit.TypeViolation {
		t.Fatalf("records when the observer returns: %+v", rs)
	}
	o.Denial(info, denial)
	o.CallEnd(info, &runtime.Result{
		CallID: "c1", Outcome: runtime.Violation, Duration: 1500 * time.Microsecond,
		Effects: []capabilities.Effect{{Verb: capabilities.Create, Kind: capabilities.KindFile, Object: "/data/b", Bytes: 3}},
		Stderr:  []byte(strings.Repeat("x", 5000) + "log \x1b[31m\u202e"), Err: errors.New("why"),
		DroppedMeta: 2, DroppedNotes: 3,
	})
	o.CallEnd(runtime.CallInfo{ID: "c2", Package: "notes", Tool: "list_notes"}, &runtime.Result{Outcome: runtime.OK, Committed: true, Remembered: true})
	l.Flush()

	rs, skipped := read(t, j, audit.Filter{})
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
	if rs, _ := read(t, j, audit.Filter{Violations: true}); len(rs) != 1 {
		t.Errorf("violations: %+v", rs)
	}
	if rs, _ := read(t, j, audit.Filter{Tool: "list_notes"}); len(rs) != 1 || !*rs[0].Committed || !rs[0].Remembered {
		t.Errorf("by tool: %+v", rs)
	}
	logged, err := j.Records(t.Context(), "", 9)
	if err != nil || len(logged) != 4 {
		t.Fatal(logged, err)
	}
	for i, r := range logged {
		if bytes.ContainsAny(r.Data, "\x1b\u202e") || !r.Time.Equal(rs[i].Time) {
			t.Errorf("in the journal: %v %q", r.Time, r.Data)
		}
	}
}

// The record of a call that commits is in its commit and nowhere else, whether it
// answered well or not; what the commit did not do is told as every other end.
func TestRecordOfACommit(t *testing.T) {
	j := newJournal()
	l := start(t, j, audit.Options{Every: never})
	o := l.Observer()
	r := &runtime.Result{CallID: "c1", Outcome: runtime.ToolError, Committed: true, Recorded: true, Effects: []capabilities.Effect{
		{Verb: capabilities.Create, Kind: capabilities.KindFile, Object: "/data/b", Bytes: 3},
		{Verb: capabilities.Send, Kind: capabilities.KindOutbox, Object: "example.com/hook", Bytes: 7, Detail: "k1"},
	}}
	records := o.Record(info, r)
	if len(records) != 2 {
		t.Fatalf("%d records of a call and its message", len(records))
	}
	if _, err := j.Commit(t.Context(), &store.Commit{ID: "c1", Records: records}); err != nil {
		t.Fatal(err)
	}
	o.CallEnd(info, r)
	l.Flush()
	rs, skipped := read(t, j, audit.Filter{})
	if len(rs) != 2 || skipped != 0 || j.count() != 0 {
		t.Fatalf("%d records, %d skipped, %d writes", len(rs), skipped, j.count())
	}
	if r := rs[0]; r.Type != audit.TypeCall || !*r.Committed || r.Outcome != runtime.ToolError || r.CallID != "c1" {
		t.Errorf("call: %+v", r)
	}
	if r := rs[1]; r.Type != audit.TypeOutbox || r.Event != audit.EventQueued || r.Object != "example.com/hook" || r.Key != "k1" || r.Bytes != 7 || r.CallID != "c1" || r.Tool != "add_note" {
		t.Errorf("message: %+v", r)
	}
	failed := *r
	failed.Committed, failed.Outcome = false, runtime.Conflict
	o.CallEnd(runtime.CallInfo{ID: "c2"}, &failed)
	l.Flush()
	if rs, _ := read(t, j, audit.Filter{CallID: "c2"}); len(rs) != 1 || *rs[0].Committed {
		t.Errorf("a commit that was not done: %+v", rs)
	}
}

// What must not be lost is written when the call goes on; what can be made again
// by calling again costs no write.
func TestDurable(t *testing.T) {
	wrote := []capabilities.Effect{{Verb: capabilities.Read}, {Verb: capabilities.Append}}
	looked := []capabilities.Effect{{Verb: capabilities.Read}}
	for name, c := range map[string]struct {
		r       runtime.Result
		durable bool
	}{
		"ok":              {runtime.Result{Outcome: runtime.OK, Committed: true, Effects: looked}, false},
		"dry run":         {runtime.Result{Outcome: runtime.OK, Effects: wrote}, false},
		"remembered":      {runtime.Result{Outcome: runtime.OK, Committed: true, Effects: wrote, Remembered: true}, false},
		"tool error":      {runtime.Result{Outcome: runtime.ToolError, Effects: wrote}, false},
		"refused":         {runtime.Result{Outcome: runtime.Refused}, false},
		"timeout":         {runtime.Result{Outcome: runtime.Timeout}, false},
		"limit":           {runtime.Result{Outcome: runtime.Limit}, false},
		"conflict":        {runtime.Result{Outcome: runtime.Conflict}, false},
		"saved elsewhere": {runtime.Result{Outcome: runtime.OK, Committed: true, Effects: wrote}, true},
		"violation":       {runtime.Result{Outcome: runtime.Violation}, true},
		"reported":        {runtime.Result{Outcome: runtime.OK, All: []capabilities.Violation{violation}}, true},
		"denied":          {runtime.Result{Outcome: runtime.OK, Denials: []capabilities.Denial{denial}}, true},
		"partial":         {runtime.Result{Outcome: runtime.Timeout, Partial: true}, true},
		"host error":      {runtime.Result{Outcome: runtime.HostError}, true},
		"unknown":         {runtime.Result{Outcome: "new"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal()
			l := start(t, j, audit.Options{Every: never})
			l.Observer().CallEnd(info, &c.r)
			if rs, _ := read(t, j, audit.Filter{}); (len(rs) == 1) != c.durable {
				t.Errorf("%d records when the call has ended", len(rs))
			}
			l.Close()
			if rs, _ := read(t, j, audit.Filter{}); len(rs) != 1 || rs[0].Outcome != c.r.Outcome {
				t.Errorf("after the end: %+v", rs)
			}
		})
	}
}

func TestLoadFailed(t *testing.T) {
	j := newJournal()
	l := start(t, j, audit.Options{Every: never})
	l.LoadFailed(&runtime.LoadError{Package: "notes", Phase: "link", Err: errors.New("why"), Log: []byte("panic: x\n")})
	rs, _ := read(t, j, audit.Filter{})
	if len(rs) != 1 || rs[0].Type != audit.TypeLoad || rs[0].Package != "notes" || rs[0].Phase != "link" || rs[0].Error != "why" || rs[0].Stderr != "panic: x\n" {
		t.Errorf("%+v", rs)
	}
	if rs, _ := read(t, j, audit.Filter{CallID: "c1"}); len(rs) != 0 {
		t.Errorf("records of a call: %+v", rs)
	}
}

// A package that was admitted and a configuration that was read have records of
// no call, written at once.
func TestEvents(t *testing.T) {
	j := newJournal()
	l := start(t, j, audit.Options{Every: never})
	l.PackageAdmitted("notes", "first use", "sha256:1")
	l.ConfigReloaded(nil)
	l.ConfigReloaded(errors.New("sandboxd.yaml:3: " + strings.Repeat("x", 5000)))
	rs, _ := read(t, j, audit.Filter{})
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

// What a courier tells of a message is a record as all others.
func TestOutboxRecord(t *testing.T) {
	j := newJournal()
	at := time.Date(2031, 2, 3, 4, 5, 6, 7, time.FixedZone("east", 3600))
	e := courier.Event{
		Kind: courier.Failed, Time: at, Space: store.Space{Principal: "alice", Package: "relay", Area: "outbox"}, Host: "example.com", Path: "/hook",
		Key: "k1", Bytes: 7, CallID: "c1", Tool: "send", Attempts: 3, Error: "down \x1b[2J" + strings.Repeat("x", 5000), Next: at.Add(time.Minute),
	}
	data := audit.OutboxRecord(e)
	if bytes.ContainsRune(data, '\x1b') {
		t.Errorf("%q", data)
	}
	if err := j.Append(t.Context(), store.Record{Time: e.Time, Data: data}); err != nil {
		t.Fatal(err)
	}
	rs, skipped := read(t, j, audit.Filter{CallID: "c1", Tool: "send"})
	want := audit.Record{
		Time: at.UTC(), Type: audit.TypeOutbox, CallID: "c1", Principal: "alice", Package: "relay", Tool: "send", Event: "failed",
		Object: "example.com/hook", Key: "k1", Bytes: 7, Attempts: 3, Error: e.Error[:4096], Next: at.Add(time.Minute).UTC(),
	}
	if len(rs) == 1 {
		rs[0].Next = rs[0].Next.UTC()
	}
	if skipped != 0 || len(rs) != 1 || !reflect.DeepEqual(rs[0], want) {
		t.Errorf("%+v, %d skipped\nwant %+v", rs, skipped, want)
	}
}

func TestReadEmpty(t *testing.T) {
	if rs, skipped := read(t, newJournal(), audit.Filter{}); len(rs) != 0 || skipped != 0 {
		t.Errorf("%v, %d", rs, skipped)
	}
}

// Whatever stands in a journal, records are read and the rest is counted.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte("null"))
	f.Add([]byte("\x00\xff"))
	f.Add([]byte(`{"type":"call","hint":7}`))
	f.Add([]byte(strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, junk []byte) {
		j := memstore.New()
		l := audit.New(j, audit.Options{})
		writeIDs(l, 0, 1)
		if err := j.Append(context.Background(), store.Record{Data: junk}); err != nil {
			t.Fatal(err)
		}
		writeIDs(l, 1, 2)
		l.Close()
		rs, skipped := read(t, j, audit.Filter{})
		if len(rs)+skipped != 3 || !slices.Contains(callIDs(rs), "w-0") || !slices.Contains(callIDs(rs), "w-1") {
			t.Errorf("%v, %d skipped", callIDs(rs), skipped)
		}
	})
}
