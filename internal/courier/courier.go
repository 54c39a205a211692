package courier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// batch is how many messages of a lane are delivered before the queue is looked
// at again.
const batch = 64

// Courier delivers messages. It is safe for concurrent use.
type Courier struct {
	o    Options
	wake chan struct{}
	seq  atomic.Uint64

	mu      sync.Mutex
	busy    map[lane]bool // that are delivered to now
	ended   chan struct{} // closed and replaced when one of them is no longer
	missing map[lane]bool // that were reported to have no sink
}

// lane is what messages are delivered on one after the other.
type lane struct{ pkg, host string }

// New returns a courier that delivers nothing yet.
func New(o Options) *Courier {
	return &Courier{
		o: o.withDefaults(), wake: make(chan struct{}, 1),
		busy: map[lane]bool{}, ended: make(chan struct{}), missing: map[lane]bool{},
	}
}

// Wake says that there may be something new. It returns at once.
func (c *Courier) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run delivers messages as they become due, until the context ends and what is
// being delivered then has been recorded. Errors of the store are told to
// [Options.Fault], and the next look tries again.
func (c *Courier) Run(ctx context.Context) {
	for ctx.Err() == nil {
		_, next, err := c.look(ctx, nil)
		if err != nil && ctx.Err() == nil {
			c.o.Fault(err)
		}
		wait := c.o.Poll
		if !next.IsZero() {
			wait = min(wait, max(time.Until(next), 0))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	c.waitAll()
}

// Drain delivers what is due, each message once, and returns when that is done.
// It returns the error of the store, or the cause where the context ended before;
// what was not delivered stays pending.
func (c *Courier) Drain(ctx context.Context) error {
	once := map[errand]bool{}
	for {
		ended := c.ending()
		started, _, err := c.look(ctx, once)
		switch {
		case ctx.Err() != nil:
			c.waitAll()
			return context.Cause(ctx)
		case err != nil:
			c.waitAll()
			return err
		case started == 0 && c.idle():
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

func (c *Courier) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) == 0
}

// ending returns what is closed when one more lane was delivered to.
func (c *Courier) ending() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// waitAll waits until nothing is delivered any more.
func (c *Courier) waitAll() {
	for {
		ended := c.ending()
		if c.idle() {
			return
		}
		<-ended
	}
}

// errand is a message to deliver.
type errand struct {
	space     store.Space
	host, key string
}

func (e errand) lane() lane { return lane{e.space.Package, e.host} }

// due is what can be delivered now, and when that changes.
type due struct {
	lanes   map[lane][]errand
	next    time.Time // the first that is due later; zero: none
	backlog Backlog
}

// look starts to deliver what is due, lane by lane, without what is in once, and
// puts what it started there. It returns how many lanes it started with, and when
// the next message will be due, as far as it is known.
func (c *Courier) look(ctx context.Context, once map[errand]bool) (started int, next time.Time, err error) {
	d, err := c.pending(ctx, once)
	if err != nil {
		return 0, time.Time{}, err
	}
	c.o.Backlog(d.backlog)
	for l, list := range d.lanes {
		if !c.start(ctx, l, list) {
			continue
		}
		started++
		for _, e := range list {
			if once != nil {
				once[e] = true
			}
		}
	}
	return started, d.next, nil
}

// pending reads the queue.
func (c *Courier) pending(ctx context.Context, once map[errand]bool) (*due, error) {
	spaces, err := outbox.Spaces(ctx, c.o.Store)
	if err != nil {
		return nil, err
	}
	snap, err := c.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	now, d := time.Now(), &due{lanes: map[lane][]errand{}}
	for _, space := range spaces {
		err := outbox.Queue(ctx, snap, space, func(q outbox.Queued) bool {
			d.backlog.add(q.Created)
			e := errand{space, q.Host, q.Key}
			sink, served := c.o.Sink(space.Package, q.Host)
			switch l := e.lane(); {
			case once[e]:
			case sink == nil && served:
				c.noSink(ctx, e)
			case sink == nil:
			case q.Due.After(now):
				if d.next.IsZero() || q.Due.Before(d.next) {
					d.next = q.Due
				}
			case len(d.lanes[l]) < batch:
				d.lanes[l] = append(d.lanes[l], e)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// start delivers a list in the background, unless the lane is delivered to
// already or too many others are: then a later look does.
func (c *Courier) start(ctx context.Context, l lane, list []errand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[l] || len(c.busy) >= c.o.Hosts {
		return false
	}
	c.busy[l] = true
	go func() {
		progress := false
		defer func() { c.end(l, progress) }()
		for _, e := range list {
			if ctx.Err() != nil {
				return
			}
			done, err := c.deliver(ctx, e)
			if err != nil {
				c.o.Fault(err)
			}
			progress = progress || done
		}
	}()
	return true
}

// end makes room for the next lane. Without progress the next look can wait: it
// would meet the same.
func (c *Courier) end(l lane, progress bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, l)
	close(c.ended)
	c.ended = make(chan struct{})
	if progress {
		c.Wake()
	}
}

// noSink reports a package and host that nobody delivers to, once.
func (c *Courier) noSink(ctx context.Context, m errand) {
	c.mu.Lock()
	known := c.missing[m.lane()]
	c.missing[m.lane()] = true
	c.mu.Unlock()
	if known {
		return
	}
	e := Event{Kind: NoSink, Time: time.Now(), Space: m.space, Host: m.host, Key: m.key}
	if r := c.records(e); len(r) > 0 {
		if err := c.o.Store.Append(ctx, r...); err != nil {
			c.o.Fault(err)
		}
	}
	c.o.Observe(e)
}

func (c *Courier) records(e Event) []store.Record {
	data := c.o.Record(e)
	if data == nil {
		return nil
	}
	return []store.Record{{Time: e.Time, Data: data}}
}
