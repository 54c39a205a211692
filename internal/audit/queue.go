package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

const (
	// writeTime is how long a write may take. Calls wait for it, and must not wait
	// for a store that is stuck.
	writeTime = 5 * time.Second
	// Beyond so many times the records, or bytes, that are written together a call
	// waits until they are written.
	crowd      = 4
	batchBytes = 1 << 20
	// named is how many records an error names.
	named = 8
)

// entry is a record that waits.
type entry struct {
	record  store.Record
	subject string
	durable bool // who wrote it waits until it is
}

// batch is entries that are written together.
type batch struct {
	entries []entry
	bytes   int
	done    chan struct{} // closed once they are written, or could not be
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

func (b *batch) add(e entry) {
	b.entries = append(b.entries, e)
	b.bytes += len(e.record.Data)
}

// drop removes the entry that is missed least: the oldest one that nobody waited
// for, or else the oldest.
func (b *batch) drop() entry {
	i := max(0, slices.IndexFunc(b.entries, func(e entry) bool { return !e.durable }))
	e := b.entries[i]
	b.entries = slices.Delete(b.entries, i, i+1)
	b.bytes -= len(e.record.Data)
	return e
}

// queue writes records in the order in which they came, all that wait at once:
// those who wait take turns, and whoever has the turn writes for all.
type queue struct {
	journal store.Journal
	o       Options
	turn    chan struct{} // has room for who writes
	first   chan struct{} // a record came that nobody waits for
	full    chan struct{} // so many came that they are to be written now
	stop    chan struct{} // closed by close
	stopped chan struct{}

	mu      sync.Mutex // protects all below
	pending *batch
	closed  bool
	lost    int
}

func newQueue(j store.Journal, o Options) *queue {
	q := &queue{
		journal: j, o: o, pending: newBatch(), turn: make(chan struct{}, 1), first: make(chan struct{}, 1), full: make(chan struct{}, 1),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go q.run()
	return q
}

// run writes what nobody waits for.
func (q *queue) run() {
	defer close(q.stopped)
	for {
		select {
		case <-q.first:
		case <-q.stop:
			return
		}
		timer := time.NewTimer(q.o.Every)
		select {
		case <-timer.C:
		case <-q.full:
		case <-q.stop:
			timer.Stop()
			return
		}
		timer.Stop()
		q.flush()
	}
}

// add takes a record, and waits until it is written where it is to be durable or
// too many wait.
func (q *queue) add(e entry) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.lose(e.subject, store.ErrClosed)
		return
	}
	b := q.pending
	b.add(e)
	wait := e.durable || q.over(b, crowd)
	full := q.over(b, 1)
	q.mu.Unlock()
	if wait {
		q.await(b)
		return
	}
	signal(q.first)
	if full {
		signal(q.full)
	}
}

// over reports whether a batch is so many times as large as one that is written
// at once.
func (q *queue) over(b *batch, times int) bool {
	return len(b.entries) >= times*q.o.Records || b.bytes >= times*batchBytes
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await returns when a batch is written, by this goroutine or another.
func (q *queue) await(b *batch) {
	select {
	case <-b.done:
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
		select {
		case <-b.done:
		default: // so it is the one that is next
			q.write()
		}
	}
}

// flush writes what waits.
func (q *queue) flush() {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	q.write()
}

// write writes what waits. The caller has the turn.
func (q *queue) write() {
	q.mu.Lock()
	b := q.pending
	q.pending = newBatch()
	q.mu.Unlock()
	defer close(b.done)
	if len(b.entries) == 0 {
		return
	}
	records := make([]store.Record, len(b.entries))
	for i, e := range b.entries {
		records[i] = e.record
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	if err := q.journal.Append(ctx, records...); err != nil {
		q.failed(b, err)
	}
}

// failed keeps records for another try where they were not written for certain:
// once more would be twice, otherwise. As many as there is no room for are lost.
func (q *queue) failed(b *batch, err error) {
	q.mu.Lock()
	var lost []entry
	if q.closed || errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrClosed) {
		lost = b.entries
	} else {
		next := q.pending
		next.entries = append(slices.Clone(b.entries), next.entries...)
		next.bytes += b.bytes
		for len(next.entries) > 0 && q.over(next, crowd) {
			lost = append(lost, next.drop())
		}
	}
	q.lost += len(lost)
	q.mu.Unlock()
	if len(lost) < len(b.entries) {
		signal(q.first)
		q.o.OnError(fmt.Errorf("audit log cannot be written; %s will be tried again: %w", subjects(b.entries), err))
	}
	if len(lost) > 0 {
		q.o.OnError(fmt.Errorf("%s is lost: %w", subjects(lost), err))
	}
}

// subjects names records.
func subjects(es []entry) string {
	var names []string
	for _, e := range es[:min(len(es), named)] {
		names = append(names, "audit record ("+e.subject+")")
	}
	if more := len(es) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// lose counts a record that is not written.
func (q *queue) lose(subject string, err error) {
	q.mu.Lock()
	q.lost++
	q.mu.Unlock()
	q.o.OnError(fmt.Errorf("audit record (%s) is lost: %w", subject, err))
}

func (q *queue) lostCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// close writes what waits and takes no more.
func (q *queue) close() {
	q.mu.Lock()
	closed := q.closed
	q.closed = true
	q.mu.Unlock()
	if !closed {
		close(q.stop)
	}
	<-q.stopped
	q.flush()
}
