package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Filter says which records are wanted. The zero Filter wants all.
type Filter struct {
	Violations bool   // only violations
	Tool       string // only this tool's; empty: all
	CallID     string // only this call's; empty: all
}

func (f Filter) wants(r Record) bool {
	return (!f.Violations || r.Type == TypeViolation) && (f.Tool == "" || r.Tool == f.Tool) && (f.CallID == "" || r.CallID == f.CallID)
}

const (
	// pollInterval is how often Follow looks for new records.
	pollInterval = 200 * time.Millisecond
	// page is how many records are read at once.
	page = 256
)

// Read hands each wanted record of a journal to each, in the order in which they
// were written. It returns how many records it skipped because they are none of
// this package's.
func Read(ctx context.Context, j store.Journal, f Filter, each func(Record) error) (skipped int, err error) {
	r := reader{journal: j, filter: f, each: each}
	err = r.look(ctx)
	return r.skipped, err
}

// Follow is Read that goes on with what is written later, by whatever process,
// until ctx ends. Its end is no error. Who falls behind while records are pruned
// does not get those that are gone: then missed is called, before the next record
// is handed on.
func Follow(ctx context.Context, j store.Journal, f Filter, each func(Record) error, missed func()) (skipped int, err error) {
	r := reader{journal: j, filter: f, each: each, missed: missed}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for err = r.begin(ctx); err == nil; {
		if err = r.look(ctx); err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return r.skipped, nil
		case <-tick.C:
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return r.skipped, err
}

// reader hands on records from a place on.
type reader struct {
	journal store.Journal
	filter  Filter
	each    func(Record) error
	missed  func()            // nil: nobody asks what was pruned
	last    map[string]uint64 // record of each writer that was read, or was pruned before
	after   store.Cursor
	skipped int
}

// begin notes what is gone already, which nobody misses.
func (r *reader) begin(ctx context.Context) error {
	heads, err := r.journal.Heads(ctx)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	r.last = map[string]uint64{}
	for _, h := range heads {
		r.last[h.Writer] = h.First - 1
	}
	return nil
}

// look hands on what is there.
func (r *reader) look(ctx context.Context) error {
	for {
		list, err := r.journal.Records(ctx, r.after, page)
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		if r.missed != nil {
			if err := r.gaps(ctx, list); err != nil {
				return err
			}
		}
		for _, l := range list {
			r.after = l.Cursor
			if err := r.hand(l.Data); err != nil {
				return err
			}
		}
	}
}

// gaps calls missed where records were pruned that were neither read nor are in
// the list.
func (r *reader) gaps(ctx context.Context, list []store.Logged) error {
	gap := false
	for _, l := range list {
		gap = gap || l.N > r.last[l.Writer]+1
		r.last[l.Writer] = l.N
	}
	heads, err := r.journal.Heads(ctx)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	for _, h := range heads {
		if h.First > r.last[h.Writer]+1 {
			gap = true
			r.last[h.Writer] = h.First - 1
		}
	}
	if gap {
		r.missed()
	}
	return nil
}

// hand hands on a record, if it is wanted.
func (r *reader) hand(data []byte) error {
	var rec Record
	if json.Unmarshal(data, &rec) != nil || rec.Type == "" {
		r.skipped++
		return nil
	}
	if !r.filter.wants(rec) {
		return nil
	}
	return r.each(rec)
}
