package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

var errDown = errors.New("down")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// post commits messages to a host with keys, as a call would.
func post(t testing.TB, s store.Store, host string, keys ...string) {
	t.Helper()
	postOf(t, s, "p", host, keys...)
}

// postOf commits those of a package.
func postOf(t testing.TB, s store.Store, pkg, host string, keys ...string) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	sender := outbox.Sender{Principal: "local", Package: pkg, Tool: "send", CallID: "call"}
	grant := capabilities.Grant{Claim: capabilities.Effective{OpenWorld: true}, Outbox: []string{host}}
	b := outbox.New(outbox.Stored(snap, sender.Space()), outbox.Options{
		Sender: sender, Ledger: capabilities.NewLedger(grant, capabilities.Notify{}),
		Bytes: 1 << 20, Quota: store.Usage{Keys: 1 << 20, Bytes: 1 << 30},
	})
	for _, k := range keys {
		must(t, b.Send(t.Context(), outbox.Message{Host: host, Method: "POST", Path: "/", Body: []byte("body"), Key: k}))
	}
	c, err := b.Change()
	must(t, err)
	_, err = s.Commit(t.Context(), &store.Commit{ID: fmt.Sprint(pkg, host, keys), Guards: c.Guards, Writes: c.Writes})
	must(t, err)
}

// sink is a host that keeps what it gets.
type sink struct {
	mu     sync.Mutex
	got    []string // keys
	at     []time.Time
	now    map[string]bool // being delivered
	twice  bool            // a message was delivered while it was being delivered
	answer func(ctx context.Context, m outbox.Message, attempt int) error
}

func (s *sink) Deliver(ctx context.Context, m outbox.Message) error {
	s.mu.Lock()
	if s.now == nil {
		s.now = map[string]bool{}
	}
	s.twice = s.twice || s.now[m.Key]
	s.now[m.Key] = true
	s.got, s.at = append(s.got, m.Key), append(s.at, time.Now())
	n := len(s.got)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[m.Key] = false
	}()
	if s.answer == nil {
		return nil
	}
	return s.answer(ctx, m, n)
}

func (s *sink) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.got))
}

// told collects what a courier tells.
type told struct {
	mu     sync.Mutex
	events []Event
	faults []error
}

// byHost has the same sinks for all packages.
func byHost(sinks map[string]Sink) func(string, string) (Sink, bool) {
	return func(_, host string) (Sink, bool) { return sinks[host], true }
}

func (l *told) options(s store.Store, sinks map[string]Sink) Options {
	return Options{
		Store: s, Sink: byHost(sinks),
		Record: func(e Event) []byte { b, _ := json.Marshal(e); return b },
		Observe: func(e Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
		},
		Fault: func(err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.faults = append(l.faults, err)
		},
	}
}

func (l *told) kinds() []Kind {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Kind
	for _, e := range l.events {
		list = append(list, e.Kind)
	}
	return list
}

func (l *told) fault(target error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.faults, func(err error) bool { return errors.Is(err, target) })
}

// journal returns the kinds that the journal tells of.
func journal(t testing.TB, s store.Store) []Kind {
	t.Helper()
	records, err := s.Records(t.Context(), "", 1000)
	must(t, err)
	var list []Kind
	for _, r := range records {
		var e Event
		must(t, json.Unmarshal(r.Data, &e))
		list = append(list, e.Kind)
	}
	return list
}

// only returns the one message of a store.
func only(t testing.TB, s store.Store) outbox.Record {
	t.Helper()
	list, err := outbox.List(t.Context(), s, 9)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d messages: %+v", len(list), list)
	}
	return list[0].Record
}

// run runs a courier until stop is called, which waits for its end.
func run(t testing.TB, c *Courier) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// faulty is a store whose commits may fail.
type faulty struct {
	*memstore.Store
	mu      sync.Mutex
	commits int
	before  func(n int, c *store.Commit) error // n from 1; the commit is not done
	after   func(n int, c *store.Commit) error // it is done
}

func (f *faulty) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	f.mu.Lock()
	f.commits++
	n := f.commits
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, c); err != nil {
			return 0, err
		}
	}
	v, err := f.Store.Commit(ctx, c)
	if err == nil && f.after != nil {
		err = f.after(n, c)
	}
	return v, err
}
