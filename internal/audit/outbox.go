package audit

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/runtime"
)

// EventQueued is the event of a message that was committed with its call. The
// others are the kinds of a courier's events.
const EventQueued = "queued"

// queuedRecords returns a record of each message that a call sends, whose effects
// these are.
func queuedRecords(c runtime.CallInfo, effects []capabilities.Effect, now time.Time) (rs []Record) {
	for _, e := range effects {
		if e.Verb != capabilities.Send || e.Kind != capabilities.KindOutbox {
			continue
		}
		r := newRecord(TypeOutbox, c, now)
		r.Event, r.Object, r.Key, r.Bytes = EventQueued, e.Object, e.Detail, e.Bytes
		rs = append(rs, r)
	}
	return rs
}

// OutboxRecord returns the record of what became of a message, as
// [courier.Options.Record] wants it.
func OutboxRecord(e courier.Event) []byte {
	r := Record{
		Time: e.Time.UTC(), Type: TypeOutbox, CallID: e.CallID, Principal: e.Space.Principal, Package: e.Space.Package, Tool: e.Tool,
		Event: string(e.Kind), Object: e.Host + e.Path, Key: e.Key, Bytes: e.Bytes, Attempts: e.Attempts, Next: e.Next, Error: head(e.Error),
	}
	encoded, err := encode(r)
	if err != nil {
		return nil
	}
	return encoded.Data
}
