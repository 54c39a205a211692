package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Lives of connections. An address may lead elsewhere one day, and connections
// that nobody needs are a burden to the server.
const (
	maxLife = time.Hour
	maxIdle = 5 * time.Minute
)

// slot is a connection and a chain of records, which one caller has at a time.
type slot struct {
	name   string
	writer string    // the name of the chain: that of the slot, and which one it is
	begun  int       // chains
	idle   time.Time // since when nothing was written to the chain
	conn   *pgx.Conn // nil: none
	until  time.Time // when the connection is closed
	used   time.Time

	// The end of the chain, as far as it is known: not before the first commit and
	// not after one whose answer was lost.
	known bool
	head  head
}

// head is the end of a chain. A commit of an older epoch is refused.
type head struct {
	n     int64
	hash  store.Digest
	epoch int64
}

// begin begins a new chain if there is none, or if nothing was written to it for
// so long that its end may be forgotten.
func (sl *slot) begin() {
	// Without the monotonic clock, which may stand still while the machine sleeps.
	if now := time.Now().Round(0); sl.begun == 0 || now.Sub(sl.idle) > chainIdle {
		sl.begun++
		sl.writer, sl.idle, sl.known = fmt.Sprintf("%s-%d", sl.name, sl.begun), now, false
	}
}

func (sl *slot) take(conn *pgx.Conn) {
	sl.conn = conn
	sl.until = time.Now().Add(maxLife - rand.N(maxLife/4))
}

// drop closes the connection without waiting for the server.
func (sl *slot) drop() {
	if sl.conn == nil {
		return
	}
	_ = sl.conn.Close(canceled()) // it says that it did not say farewell
	sl.conn = nil
}

// pool is the slots of a store. Those that were used last are used first, so
// that there are no more connections and chains than callers.
type pool struct {
	places chan struct{} // has as many as are in use
	mu     sync.Mutex
	free   []*slot // the end was used last
	closed bool
}

func newPool(writer string, size int) *pool {
	p := &pool{places: make(chan struct{}, size)}
	for i := range size {
		p.free = append(p.free, &slot{name: fmt.Sprintf("%s-%d", writer, size-1-i)})
	}
	return p
}

// check refuses callers that went away, and all once the pool is closed.
func (p *pool) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// acquire returns a slot, when one is free.
func (p *pool) acquire(ctx context.Context) (*slot, error) {
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.places
		return nil, store.ErrClosed
	}
	last := len(p.free) - 1
	sl := p.free[last]
	p.free = p.free[:last]
	if sl.conn != nil && time.Now().After(sl.until) {
		sl.drop()
	}
	return sl, nil
}

// give gives the pool the first connection.
func (p *pool) give(conn *pgx.Conn) { p.free[len(p.free)-1].take(conn) }

func (p *pool) release(sl *slot) {
	p.mu.Lock()
	now := time.Now()
	sl.used = now
	p.free = append(p.free, sl)
	for _, old := range p.free {
		if now.Sub(old.used) < maxIdle {
			break
		}
		old.drop()
	}
	p.mu.Unlock()
	<-p.places
}

// close closes the connections, each once it is free.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for range cap(p.places) {
		p.places <- struct{}{}
	}
	defer func() {
		for range cap(p.places) {
			<-p.places
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sl := range p.free {
		if sl.conn == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = sl.conn.Close(ctx) // nothing is lost with it
		cancel()
		sl.conn = nil
	}
	return nil
}

// patience is how long one waits for a server that is lost.
type patience struct {
	until time.Time
	pause time.Duration
}

func (s *Store) patience() *patience {
	return &patience{until: time.Now().Add(s.opts.Settle), pause: 10 * time.Millisecond}
}

// wait waits a little longer each time; false: for nothing more.
func (p *patience) wait(ctx context.Context) bool {
	if !time.Now().Add(p.pause).Before(p.until) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(p.pause/2 + rand.N(p.pause)):
	}
	p.pause = min(2*p.pause, time.Second)
	return true
}
