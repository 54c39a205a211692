package courier

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Sink takes messages for a host. It must be safe for concurrent use, and return
// when the context ends.
type Sink interface {
	// Deliver returns nil once the other end has the message, a [*Permanent] where
	// trying again is of no use, and any other error where it may be.
	Deliver(ctx context.Context, m outbox.Message) error
}

// Permanent is the error of a message that nothing but another message mends.
type Permanent struct{ Err error }

// Error returns the cause in words.
func (e *Permanent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Permanent) Unwrap() error { return e.Err }

// ErrLeaseLost: another process claimed a message while it was being delivered,
// because that took longer than the lease.
var ErrLeaseLost = errors.New("lease of the message lost")

// Options of a [Courier]. With the zero Options but for the store nothing is
// delivered.
type Options struct {
	Store store.Store
	// Sink returns who takes the messages of a package for a host; nil: they stay
	// pending. That is an event where the package is served here. It is called by
	// several goroutines. Default: nobody, of no package.
	Sink func(pkg, host string) (s Sink, served bool)

	Owner   string        // names this process in leases; default: random
	Poll    time.Duration // how often the store is looked at without a [Courier.Wake]; default: 5s
	Lease   time.Duration // how long a claim holds; default: 2m
	Timeout time.Duration // of one attempt; default: 30s, most: a third of the lease
	First   time.Duration // before the second attempt, about; doubled each time; default: 1s
	Longest time.Duration // between two attempts; default: 1h
	Tries   int           // given up after so many attempts; default: 100
	Age     time.Duration // given up so long after the first attempt; default: 72h
	Keep    time.Duration // how long a final message and its key are known; default: 7 days
	Hosts   int           // of packages, delivered to at the same time; default: 4

	// Record returns what the journal says of an event, nil for nothing. It is
	// written together with what it tells of.
	Record func(Event) []byte
	// Observe is told of an event after it was written. It is called by several
	// goroutines.
	Observe func(Event)
	// Backlog is told what the queue held, at each look.
	Backlog func(Backlog)
	// Fault is told of errors of the store, and of leases that were lost. It is
	// called by several goroutines.
	Fault func(error)
}

func (o Options) withDefaults() Options {
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	or(&o.Poll, 5*time.Second)
	or(&o.Lease, 2*time.Minute)
	or(&o.Timeout, 30*time.Second)
	o.Timeout = min(o.Timeout, o.Lease/3)
	or(&o.First, time.Second)
	or(&o.Longest, time.Hour)
	or(&o.Age, 72*time.Hour)
	or(&o.Keep, 7*24*time.Hour)
	or(&o.Tries, 100)
	or(&o.Hosts, 4)
	if o.Sink == nil {
		o.Sink = func(string, string) (Sink, bool) { return nil, false }
	}
	if o.Backlog == nil {
		o.Backlog = func(Backlog) {}
	}
	if o.Record == nil {
		o.Record = func(Event) []byte { return nil }
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	if o.Fault == nil {
		o.Fault = func(error) {}
	}
	return o
}

func or[T time.Duration | int](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// pause returns how long to wait after attempt n, from 1: between half of what
// doubling comes to and all of it, so that messages that failed together do not
// come back together.
func (o Options) pause(n int) time.Duration {
	d := o.First
	for i := 1; i < n && d < o.Longest; i++ {
		d *= 2
	}
	d = min(d, o.Longest)
	return d/2 + mathrand.N(d/2+1)
}

// Kind says what an [Event] is.
type Kind string

// The kinds of events.
const (
	Delivered Kind = "delivered"
	Failed    Kind = "failed"   // an attempt; there will be another
	GivenUp   Kind = "given-up" // there will be none
	NoSink    Kind = "no-sink"  // nobody delivers for that package to that host; told once
)

// Backlog is the messages of a store that are neither delivered nor given up,
// whoever delivers them.
type Backlog struct {
	Messages int
	Since    time.Time // when the oldest of them was committed; zero where there is none
}

func (b *Backlog) add(created time.Time) {
	if b.Messages++; b.Since.IsZero() || created.Before(b.Since) {
		b.Since = created
	}
}

// Event is what became of a message.
type Event struct {
	Kind     Kind        `json:"kind"`
	Time     time.Time   `json:"time"`
	Space    store.Space `json:"space"`
	Host     string      `json:"host"`
	Path     string      `json:"path,omitempty"`
	Key      string      `json:"key,omitempty"`
	Bytes    int64       `json:"bytes,omitempty"`
	CallID   string      `json:"callId,omitempty"`
	Tool     string      `json:"tool,omitempty"`
	Attempts int         `json:"attempts,omitempty"`
	Error    string      `json:"error,omitempty"`
	Next     time.Time   `json:"next,omitzero"` // attempt, of a failed one
}
