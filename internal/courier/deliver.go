package courier

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

const (
	// grace is how long the end of an attempt may take to be recorded once the
	// courier is stopped.
	grace = 10 * time.Second
	// maxError is how many bytes are kept of a sink's error.
	maxError = 500
)

var errUnanswered = errors.New("process ended during the attempt")

// deliver claims a message, delivers it and records how that ended. It reports
// whether it recorded something; a message that another process has, or had, is
// neither that nor an error.
func (c *Courier) deliver(ctx context.Context, e errand) (bool, error) {
	sink, _ := c.o.Sink(e.space.Package, e.host)
	if sink == nil { // it was taken away
		return false, nil
	}
	item, due, err := c.load(ctx, e)
	if err != nil || !due {
		return false, expected(ctx, err)
	}
	if item.Attempts >= c.o.Tries {
		done, err := c.settle(ctx, item, errUnanswered)
		if errors.Is(err, ErrLeaseLost) { // it was not held: another process did the same
			err = nil
		}
		return done, err
	}
	item, err = c.claim(ctx, item)
	if err != nil {
		return false, expected(ctx, err)
	}
	attempt, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return c.settle(ctx, item, sink.Deliver(attempt, item.Message))
}

// load returns a message, and whether it is still to be delivered now.
func (c *Courier) load(ctx context.Context, e errand) (outbox.Item, bool, error) {
	snap, err := c.o.Store.Snapshot(ctx)
	if err != nil {
		return outbox.Item{}, false, err
	}
	item, ok, err := outbox.Load(ctx, snap, e.space, e.host, e.key)
	if err != nil {
		return outbox.Item{}, false, fmt.Errorf("message %s of %s: %w", e.key, e.host, err)
	}
	if item.Lease != nil {
		item.LastError = errUnanswered.Error()
	}
	return item, ok && item.State == outbox.StatePending && !item.Due().After(time.Now()), nil
}

// claim takes the lease of a message. The attempt is counted now, as a process
// that dies during it counts nothing.
func (c *Courier) claim(ctx context.Context, item outbox.Item) (outbox.Item, error) {
	now := time.Now().Round(0).UTC()
	item.Attempts++
	if item.First.IsZero() {
		item.First = now
	}
	item.Lease = &outbox.Lease{Owner: c.o.Owner, Expires: now.Add(c.o.Lease)}
	bounded, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	v, err := c.write(bounded, item, nil)
	item.Version = v
	return item, err
}

// settle records how an attempt ended: once for all, or until the next one.
func (c *Courier) settle(ctx context.Context, item outbox.Item, failure error) (bool, error) {
	now := time.Now().Round(0).UTC()
	e := Event{
		Time: now, Space: item.Space, Host: item.Message.Host, Path: item.Message.Path, Key: item.Message.Key,
		Bytes: item.Bytes, CallID: item.CallID, Tool: item.Tool, Attempts: item.Attempts,
	}
	until := now.Add(grace) // also after the lease, as long as nobody else has claimed it
	if item.Lease != nil && item.Lease.Expires.After(until) {
		until = item.Lease.Expires
	}
	item.Lease, item.LastError = nil, ""
	if failure != nil {
		item.LastError = text(failure)
		e.Error = item.LastError
	}
	_, permanent := errors.AsType[*Permanent](failure)
	switch {
	case failure == nil:
		e.Kind, item.State = Delivered, outbox.StateDelivered
		item.Message.Body = nil
	case permanent, item.Attempts >= c.o.Tries, now.Sub(item.First) >= c.o.Age:
		e.Kind, item.State = GivenUp, outbox.StateGivenUp
	default:
		e.Kind, item.Next = Failed, now.Add(c.o.pause(item.Attempts))
		e.Next = item.Next
	}
	if e.Kind != Failed {
		item.Done, item.Expires, item.Next = now, now.Add(c.o.Keep), time.Time{}
	}
	// The end of the courier is no reason to forget what was delivered.
	bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	if _, err := c.write(bounded, item, c.records(e)); err != nil {
		if errors.Is(err, store.ErrConflict) {
			err = ErrLeaseLost
		}
		return false, fmt.Errorf("message %s of %s: %s: %w", e.Key, e.Host, e.Kind, err)
	}
	c.o.Observe(e)
	return true, nil
}

// write replaces a record by a guarded commit. What the store could not do, or
// did not answer, is tried again as the same commit until the context ends.
func (c *Courier) write(ctx context.Context, item outbox.Item, records []store.Record) (store.Version, error) {
	writes, err := item.Writes(item.Space)
	if err != nil {
		return 0, err
	}
	commit := &store.Commit{
		ID: "courier/" + c.o.Owner + "/" + strconv.FormatUint(c.seq.Add(1), 10), Time: time.Now().Round(0).UTC(),
		Guards: []store.Guard{{Key: outbox.Key(item.Space, item.Message.Host, item.Message.Key), Version: item.Version}},
		Writes: writes, Records: records,
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		v, err := c.o.Store.Commit(ctx, commit)
		if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrClosed) {
			return v, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, err
		}
	}
}

// expected returns nil for an error before an attempt that is nobody's fault:
// another process was faster, or the courier is to end.
func expected(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrConflict) || ctx.Err() != nil {
		return nil
	}
	return err
}

// text returns what is kept of an error: one line of bounded length.
func text(err error) string {
	s := err.Error()
	if len(s) > maxError {
		s = s[:maxError] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
