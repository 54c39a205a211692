package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// groupSize is how many requests are written together at most.
const groupSize = 256

// States of a request.
const (
	waiting int32 = iota
	taken
	dropped
)

// request is something that is written. What apply returns as a [refusal] left
// nothing behind; any other error spoils the transaction.
type request struct {
	apply func(*group) error
	state atomic.Int32
	done  chan error
}

// refusal is why a request is not done although the engine works.
type refusal struct{ error }

func refuse(err error) error { return refusal{err} }

// queue writes requests, many in one transaction. Those that wait take turns:
// whoever has the turn writes all that are there, and alone uses the connection.
// So one that finds nobody at work does not wait for another goroutine.
type queue struct {
	s    *Store
	c    *conn
	turn chan struct{} // has room for who has the turn

	mu     sync.Mutex
	list   []*request
	closed bool
}

func newQueue(s *Store, c *conn) *queue { return &queue{s: s, c: c, turn: make(chan struct{}, 1)} }

// do has a request written. One whose ctx ends before that is not done; once it
// is being written, do waits for the end.
func (q *queue) do(ctx context.Context, apply func(*group) error) error {
	r := &request{apply: apply, done: make(chan error, 1)}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return store.ErrClosed
	}
	q.list = append(q.list, r)
	q.mu.Unlock()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	case q.turn <- struct{}{}:
		for r.state.Load() == waiting && ctx.Err() == nil && !q.isClosed() {
			q.next()
		}
		<-q.turn
	}
	if ctx.Err() != nil && r.state.CompareAndSwap(waiting, dropped) {
		q.forget(r)
		return context.Cause(ctx)
	}
	return <-r.done
}

// forget removes a request that nobody waits for.
func (q *queue) forget(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.list, r); i >= 0 {
		q.list = slices.Delete(q.list, i, i+1)
	}
}

// close waits for the group that is being written, and refuses what still waits.
// It keeps the turn.
func (q *queue) close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.turn <- struct{}{}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.list {
		if r.state.CompareAndSwap(waiting, taken) {
			r.done <- store.ErrClosed
		}
	}
	q.list = nil
	return q.c.close()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// take returns the requests of the next group.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*request
	n := 0
	for _, r := range q.list {
		if len(out) == groupSize {
			break
		}
		n++
		if r.state.CompareAndSwap(waiting, taken) {
			out = append(out, r)
		}
	}
	q.list = slices.Delete(q.list, 0, n)
	return out
}

// next writes one group. Requests are taken when no other process writes: those
// that came while it waited are in, and those that were cancelled are not.
func (q *queue) next() {
	err := q.c.begin()
	if busy(err) {
		pause()
		return
	}
	rs := q.take()
	if err != nil {
		q.answer(rs, q.s.told(context.Background(), err))
		return
	}
	if len(rs) == 0 {
		q.c.rollback()
		return
	}
	errs, err := q.write(rs)
	if err == nil || len(rs) == 1 {
		q.answerEach(rs, errs, err)
		return
	}
	// One of them spoiled it for all: each by itself.
	for _, r := range rs {
		q.alone(r)
	}
}

// alone writes one request in a transaction of its own, as soon as nobody else
// writes.
func (q *queue) alone(r *request) {
	for {
		err := q.c.begin()
		if busy(err) {
			if !q.isClosed() {
				pause()
				continue
			}
			err = store.ErrClosed
		}
		if err != nil {
			q.answer([]*request{r}, q.s.told(context.Background(), err))
			return
		}
		errs, err := q.write([]*request{r})
		q.answerEach([]*request{r}, errs, err)
		return
	}
}

func (q *queue) answer(rs []*request, err error) {
	for _, r := range rs {
		r.done <- err
	}
}

func (q *queue) answerEach(rs []*request, errs []error, err error) {
	for i, r := range rs {
		if err != nil {
			r.done <- q.s.told(context.Background(), err)
			continue
		}
		r.done <- errs[i]
	}
}

// write does requests in the transaction that has begun, and ends it. It returns
// what refused each of them, or why none was done.
func (q *queue) write(rs []*request) ([]error, error) {
	errs := make([]error, len(rs))
	g, err := q.s.newGroup(q.c)
	for i := 0; i < len(rs) && err == nil; i++ {
		err = rs[i].apply(g)
		if r, ok := errors.AsType[refusal](err); ok {
			errs[i], err = r.error, nil
		}
	}
	if err == nil {
		err = g.finish()
	}
	if err != nil {
		q.c.rollback()
		return nil, err
	}
	if !g.changed {
		q.c.rollback()
		g.durable() // it read no more than that
		return errs, nil
	}
	if err := q.c.exec("COMMIT"); err != nil {
		q.c.rollback()
		return nil, q.settle(g, err)
	}
	g.durable()
	return errs, nil
}

// settle finds out what became of a commit that failed. What was written but not
// synced can come back when the process dies, until something is written over it.
// When that does not work either, nobody can tell.
func (q *queue) settle(g *group, failed error) error {
	if definite(failed) {
		return failed
	}
	var version int64
	err := func() error {
		if err := q.c.begin(); err != nil {
			return err
		}
		defer q.c.rollback()
		if err := q.c.exec("UPDATE state SET settled = settled + 1"); err != nil {
			return err
		}
		if err := q.c.row("SELECT version FROM state", func(r *sqlite3.Stmt) { version = r.ColumnInt64(0) }); err != nil {
			return err
		}
		return q.c.exec("COMMIT")
	}()
	if err != nil || version != g.started {
		return fmt.Errorf("%w: %w", store.ErrUnknown, failed)
	}
	return failed
}

// definite tells whether a commit failed before its last page was written: the
// log ends without it whatever happens.
func definite(err error) bool {
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_WRITE)
}

// pause waits for another process for a moment, and for another moment each time:
// so nobody always comes too late.
func pause() { time.Sleep(100*time.Microsecond + rand.N(time.Millisecond)) }
