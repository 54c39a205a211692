// Package audit keeps the log of what tools did in the journal of a store: one
// record of JSON each, in a chain of hashes for each process that writes. Only
// the host writes it, guests cannot reach it.
//
// A record of what matters (a violation, a denial, a load, an approval, a
// configuration, a call that changed something) is durable before anything else
// happens; that of a committing call is a part of its commit. Calls that changed
// nothing and broke nothing cost the store no write of their own: their records
// are collected and written together.
package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

// Defaults of [Options].
const (
	DefaultEvery   = 500 * time.Millisecond
	DefaultRecords = 256
)

// Options of a [Log].
type Options struct {
	// Every is how long the record of a call that changed nothing waits at most; a
	// process that is killed loses what came since. 0: [DefaultEvery].
	Every time.Duration
	// Records is how many of these wait at most before they are written. 0:
	// [DefaultRecords].
	Records int
	// OnError learns of records that could not be written. They do not stop the
	// calls that they are of. nil: nobody does.
	OnError func(error)
}

// Log writes records. It is safe for concurrent use.
type Log struct{ queue *queue }

// New returns a log that writes to a journal, which stays the caller's. It is to
// be closed before that.
func New(j store.Journal, o Options) *Log {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Records <= 0 {
		o.Records = DefaultRecords
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return &Log{newQueue(j, o)}
}

// Lost returns how many records could not be written.
func (l *Log) Lost() int { return l.queue.lostCount() }

// Flush writes the records that wait.
func (l *Log) Flush() { l.queue.flush() }

// Close writes the records that wait; what is written after it is lost.
func (l *Log) Close() { l.queue.close() }

// Observer returns the observer that writes an engine's records. Violations and
// denials are durable when the engine goes on.
func (l *Log) Observer() runtime.Observer {
	return runtime.Observer{
		Violation: func(c runtime.CallInfo, v capabilities.Violation) {
			l.write(violationRecord(c, v, time.Now()), true)
		},
		Denial: func(c runtime.CallInfo, d capabilities.Denial) { l.write(denialRecord(c, d, time.Now()), true) },
		Record: l.committed,
		CallEnd: func(c runtime.CallInfo, r *runtime.Result) {
			if r.Recorded && r.Committed {
				return // by the commit
			}
			l.write(callRecord(c, r, time.Now()), durable(r))
		},
	}
}

// committed returns the records of a call for its commit. One that cannot be
// encoded is told at the call's end, as that of a call that does not commit.
func (l *Log) committed(c runtime.CallInfo, r *runtime.Result) []store.Record {
	now := time.Now()
	rs := append([]Record{callRecord(c, r, now)}, queuedRecords(c, r.Effects, now)...)
	var out []store.Record
	for _, r := range rs {
		encoded, err := encode(r)
		if err != nil {
			return nil
		}
		out = append(out, encoded)
	}
	return out
}

// durable reports whether the record of a call that is not in its commit may not
// be lost: the call broke something, met a fault, or changed something.
func durable(r *runtime.Result) bool {
	if r.Partial || len(r.All) > 0 || len(r.Denials) > 0 {
		return true
	}
	switch r.Outcome {
	case runtime.OK, runtime.ToolError, runtime.Refused, runtime.Timeout, runtime.Limit, runtime.Conflict:
		return r.Committed && !r.Remembered && slices.ContainsFunc(r.Effects, func(e capabilities.Effect) bool {
			return e.Verb != capabilities.Read
		})
	case runtime.Violation, runtime.HostError:
	}
	return true
}

// LoadFailed writes the record of a package that cannot run.
func (l *Log) LoadFailed(err *runtime.LoadError) { l.write(loadRecord(err, time.Now()), true) }

// PackageAdmitted writes the record of a package that may run from now on: its
// served name, by what it was admitted ("first use", "approve", "trust
// changes"), and the digest of its module.
func (l *Log) PackageAdmitted(name, by, moduleDigest string) {
	l.write(Record{Time: time.Now().UTC(), Type: TypeApprove, Package: name, By: by, ModuleDigest: moduleDigest}, true)
}

// ConfigReloaded writes the record of a configuration that was read again. With
// an error it was refused and the one before stays.
func (l *Log) ConfigReloaded(err error) { l.write(configRecord(err, time.Now()), true) }

// write has a record written: at once, or with others.
func (l *Log) write(r Record, now bool) {
	encoded, err := encode(r)
	if err != nil {
		l.queue.lose(r.subject(), err)
		return
	}
	l.queue.add(entry{encoded, r.subject(), now})
}

// encode returns a record as the journal keeps it.
func encode(r Record) (store.Record, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return store.Record{}, fmt.Errorf("record: %w", err)
	}
	return store.Record{Time: r.Time, Data: term.JSON(b)}, nil
}
