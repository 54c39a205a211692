package audit

import (
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// Type says what a record is of.
type Type string

// The types of records. A violation or denial has a record of its own, written
// before the guest is stopped or told; the call's own record follows at its
// end.
const (
	TypeCall      Type = "call"
	TypeViolation Type = "violation"
	TypeDenial    Type = "denial"
	TypeLoad      Type = "load"    // a package that cannot run
	TypeApprove   Type = "approve" // a package that may run from now on
	TypeConfig    Type = "config"  // the configuration was read again
	TypeOutbox    Type = "outbox"  // what became of a message: queued, delivered, failed, given up, without a sink
)

// maxText bounds how much a record keeps of a guest's log, and of an error,
// which may hold a guest's stack; in bytes.
const maxText = 4096

// Record is one record of the log. Fields that do not belong to its type are
// absent.
type Record struct {
	Time      time.Time `json:"time"`
	Type      Type      `json:"type"`
	CallID    string    `json:"callId,omitempty"`
	Principal string    `json:"principal,omitempty"` // whose call it was
	Package   string    `json:"package,omitempty"`
	Tool      string    `json:"tool,omitempty"`

	// Of a call.
	Outcome     runtime.Outcome       `json:"outcome,omitempty"`
	Committed   *bool                 `json:"committed,omitempty"`
	Partial     bool                  `json:"partial,omitempty"`    // a fault of the host left a part, or may have
	Remembered  bool                  `json:"remembered,omitempty"` // answered with what an earlier call came to
	DurationMS  *float64              `json:"durationMs,omitempty"`
	Effects     []capabilities.Effect `json:"effects,omitempty"`
	Stderr      string                `json:"stderr,omitempty"` // the end of what the guest logged
	StderrCut   bool                  `json:"stderrCut,omitempty"`
	DroppedMeta int                   `json:"droppedMeta,omitempty"` // reserved _meta keys that the guest set
	// DroppedNotes counts progress and log messages that were not valid or too
	// many, not those that a client did not ask for or was too slow to take.
	DroppedNotes int    `json:"droppedNotes,omitempty"`
	Error        string `json:"error,omitempty"` // what stopped the call or the load; for the operator, it may name host paths

	// Of a violation or denial.
	Hint       *capabilities.Hint      `json:"hint,omitempty"`
	Operation  capabilities.Operation  `json:"operation,omitempty"`
	Object     string                  `json:"object,omitempty"`
	Phase      string                  `json:"phase,omitempty"` // of a load too: where it ended
	Capability capabilities.Capability `json:"capability,omitempty"`
	Errno      capabilities.Errno      `json:"errno,omitempty"`

	// Of an approval.
	By           string `json:"by,omitempty"` // first use, approve or trust changes
	ModuleDigest string `json:"moduleDigest,omitempty"`

	// Of a message, whose Object is host and path.
	Event    string    `json:"event,omitempty"` // queued, delivered, failed, given-up or no-sink
	Key      string    `json:"key,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"` // of its body
	Attempts int       `json:"attempts,omitempty"`
	Next     time.Time `json:"next,omitzero"` // attempt, of a failed one

	// Of a configuration: whether it is in force. Error says why it is not.
	Accepted *bool `json:"accepted,omitempty"`
}

// subject names the record in a message.
func (r Record) subject() string {
	s := string(r.Type)
	if r.Package != "" {
		s += " of " + r.Package
	}
	if r.CallID != "" {
		s += ", call " + r.CallID
	}
	return s
}

func newRecord(t Type, c runtime.CallInfo, now time.Time) Record {
	return Record{Time: now.UTC(), Type: t, CallID: c.ID, Principal: c.Principal, Package: c.Package, Tool: c.Tool}
}

func callRecord(c runtime.CallInfo, r *runtime.Result, now time.Time) Record {
	rec := newRecord(TypeCall, c, now)
	ms := float64(r.Duration.Microseconds()) / 1000
	rec.Outcome, rec.Committed, rec.DurationMS, rec.Effects = r.Outcome, &r.Committed, &ms, r.Effects
	rec.Partial, rec.Remembered, rec.DroppedMeta, rec.DroppedNotes = r.Partial, r.Remembered, r.DroppedMeta, r.DroppedNotes
	rec.Stderr, rec.StderrCut = tail(r.Stderr)
	if r.Err != nil {
		rec.Error = head(r.Err.Error())
	}
	return rec
}

func loadRecord(err *runtime.LoadError, now time.Time) Record {
	rec := Record{Time: now.UTC(), Type: TypeLoad, Package: err.Package, Phase: err.Phase}
	rec.Error = head(err.Err.Error())
	rec.Stderr, rec.StderrCut = tail(err.Log)
	return rec
}

func configRecord(err error, now time.Time) Record {
	accepted := err == nil
	rec := Record{Time: now.UTC(), Type: TypeConfig, Accepted: &accepted}
	if err != nil {
		rec.Error = head(err.Error())
	}
	return rec
}

// head returns the beginning of an error's text as valid UTF-8.
func head(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "\uFFFD")
}

// tail returns the end of a guest's log, where it says what it died of, as valid
// UTF-8, and whether it is not all.
func tail(log []byte) (string, bool) {
	cut := max(0, len(log)-maxText)
	return strings.ToValidUTF8(string(log[cut:]), "\uFFFD"), cut > 0
}

func violationRecord(c runtime.CallInfo, v capabilities.Violation, now time.Time) Record {
	rec := newRecord(TypeViolation, c, now)
	rec.Hint, rec.Operation, rec.Object, rec.Phase = &v.Hint, v.Operation, v.Object, string(v.Phase)
	return rec
}

func denialRecord(c runtime.CallInfo, d capabilities.Denial, now time.Time) Record {
	rec := newRecord(TypeDenial, c, now)
	rec.Capability, rec.Operation, rec.Object, rec.Errno = d.Capability, d.Operation, d.Object, d.Errno
	return rec
}
