package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Options of a [Box]. The zero Options let nothing be sent.
type Options struct {
	Sender Sender               // its arguments are not changed later
	Ledger *capabilities.Ledger // judges each message; nil: one that grants nothing
	Now    func() time.Time     // nil: time.Now
	Bytes  int64                // of the bodies and names of a call; default: none
	// Quota is how much the space may hold after the call; by default nothing may
	// be added to it. Calls that run at the same time can exceed it together.
	Quota store.Usage
	// Held tells what the space held at the start. It is asked once, when the call
	// first sends; nil: nothing was held.
	Held store.Meter
}

// Box is one call's view of the outbox, and its authority to send. It is not safe
// for concurrent use, as guests are single threaded.
type Box struct {
	base   Base // nil when sealed
	opts   Options
	held   *store.Usage       // by the space, at the start; nil: not asked yet
	sent   []Record           // what is new, in the order of sending
	known  map[[2]string]bool // of what is new; nil: nothing is
	count  int                // messages that were taken, known ones too
	bytes  int64              // of what is new, as the guest gave it
	stored store.Usage
	failed error // of the base, the first one
}

// LimitError says that the call sent more bytes than its budget. It ends the call.
type LimitError struct{ Resource string } // "writes"

// Error names the resource.
func (e *LimitError) Error() string { return e.Resource + " limit reached" }

// SealedError is a message that was sent before the request was delivered. The
// guest is stopped.
type SealedError struct{ Host string }

// Error returns one line that names the host.
func (e *SealedError) Error() string {
	return fmt.Sprintf("outbox touched before the request: send to %q", e.Host)
}

// New returns the box of a call that sent nothing yet.
func New(b Base, o Options) *Box {
	if o.Ledger == nil {
		o.Ledger = capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Box{base: b, opts: o}
}

// Sealed returns a box for code that runs before the request was delivered:
// every message is a [*SealedError].
func Sealed() *Box { return &Box{} }

// Shadow returns the box of a second run of the call, over what this one leaves.
// This one must not be sent to any more.
func (b *Box) Shadow(l *capabilities.Ledger, now func() time.Time) *Box {
	o := b.opts
	o.Ledger, o.Now, o.Held = l, now, left{b}
	return New(b.Result(), o)
}

// left tells what the space holds with what the call sent.
type left struct{ b *Box }

func (l left) Usage(ctx context.Context, _ store.Space) (store.Usage, error) { return l.b.Usage(ctx) }

// Send hands a message over, which is delivered once the call was committed. One
// without a key gets that of the sender and of its place among the messages of the
// call. A message that is known by its host and key already is taken and has no
// effect.
//
// It returns [ErrMessage] or EFBIG for a message that is not valid, a
// [*capabilities.Violation] or the errno of a denial, [ErrTooMany], a
// [*LimitError], a [*SealedError], or the error of the base. What there is no room
// for is ENOSPC and a denial. All but [ErrMessage], [ErrTooMany] and errnos end
// the call.
func (b *Box) Send(ctx context.Context, m Message) error {
	if b.base == nil {
		return &SealedError{shown(m.Host)}
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := b.opts.Ledger.Attempt(capabilities.Attempt{Operation: capabilities.OpSend, Object: m.Host}); err != nil {
		return err
	}
	if b.count == MaxMessages {
		return ErrTooMany
	}
	if m.Key == "" {
		m.Key = b.opts.Sender.key(b.count + 1)
	}
	known, err := b.isKnown(ctx, m.Host, m.Key)
	if err == nil && !known {
		err = b.add(ctx, m)
	}
	if errors.Is(err, ErrFull) {
		return b.opts.Ledger.Deny(capabilities.Denial{
			Capability: capabilities.CapOutbox, Operation: capabilities.OpSend, Object: m.Host, Errno: capabilities.ENOSPC,
		})
	}
	if err == nil {
		b.count++
	}
	return err
}

// isKnown reports whether a message was sent before, by this call or another.
// That it was is nothing the call rests on: what else happens to it, that it is
// delivered for example, is none of its business.
func (b *Box) isKnown(ctx context.Context, host, key string) (bool, error) {
	if b.known[[2]string{host, key}] {
		return true, nil
	}
	known, err := b.base.Known(ctx, host, key)
	if err != nil && b.failed == nil {
		b.failed = err
	}
	return known, err
}

func (b *Box) add(ctx context.Context, m Message) error {
	size := cost(&m)
	if size > b.opts.Bytes-b.bytes {
		return &LimitError{"writes"}
	}
	m.Body = slices.Clone(m.Body)
	at := b.opts.Now().Round(0).UTC()
	r := Record{
		Message: m, Bytes: int64(len(m.Body)), CallID: b.opts.Sender.CallID, Tool: b.opts.Sender.Tool,
		State: StatePending, Created: at, Next: at,
	}
	more, err := b.room(ctx, r)
	if err != nil {
		return err
	}
	b.sent = append(b.sent, r)
	if b.known == nil {
		b.known = map[[2]string]bool{}
	}
	b.known[[2]string{m.Host, m.Key}] = true
	b.bytes += size
	b.stored = store.Usage{Keys: b.stored.Keys + more.Keys, Bytes: b.stored.Bytes + more.Bytes}
	return nil
}

// room returns what a record takes in the store, or [ErrFull].
func (b *Box) room(ctx context.Context, r Record) (store.Usage, error) {
	now, err := b.Usage(ctx)
	if err != nil {
		return store.Usage{}, err
	}
	writes, err := r.Writes(b.opts.Sender.Space())
	if err != nil {
		return store.Usage{}, err
	}
	more := store.Usage{Keys: int64(len(writes))}
	for _, w := range writes {
		more.Bytes += int64(len(w.Name) + len(w.Value))
	}
	if more.Keys > b.opts.Quota.Keys-now.Keys || more.Bytes > b.opts.Quota.Bytes-now.Bytes {
		return store.Usage{}, ErrFull
	}
	return more, nil
}

// cost returns what a message takes, about.
func cost(m *Message) int64 {
	return int64(len(m.Host) + len(m.Path) + len(m.ContentType) + len(m.Key) + len(m.Body))
}

// Usage returns what the space holds with what the call sent.
func (b *Box) Usage(ctx context.Context) (store.Usage, error) {
	if b.held == nil {
		held := store.Usage{}
		if b.opts.Held != nil {
			var err error
			if held, err = b.opts.Held.Usage(ctx, b.Space()); err != nil {
				if b.failed == nil {
					b.failed = err
				}
				return store.Usage{}, err
			}
		}
		b.held = &held
	}
	return store.Usage{Keys: b.held.Keys + b.stored.Keys, Bytes: b.held.Bytes + b.stored.Bytes}, nil
}

// Result returns what is known after the call, for who judges it.
func (b *Box) Result() Base { return result{b} }

type result struct{ b *Box }

func (r result) Known(ctx context.Context, host, key string) (bool, error) {
	if r.b.known[[2]string{host, key}] {
		return true, nil
	}
	return r.b.base.Known(ctx, host, key)
}
