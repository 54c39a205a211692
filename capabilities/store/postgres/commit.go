package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Commit does c, see [store.Store]. What it has begun is not cut off when ctx
// ends, but in the time that the server has to answer; waiting ends with ctx.
func (s *Store) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	if err := check(c); err != nil {
		return 0, err
	}
	sizes, err := s.blobSizes(ctx, c)
	if err != nil {
		return 0, err
	}
	sl, err := s.pool.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer s.pool.release(sl)
	d := &doing{store: s, slot: sl, prepared: prepare(c, sizes)}
	v, err := d.run(ctx)
	if err != nil && d.unknown {
		s.unsettle(c.ID, sl.writer)
		return 0, fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	return v, err
}

// doing is a commit on its way.
type doing struct {
	*prepared
	store    *Store
	slot     *slot
	refusals int       // by the server, for what others do
	patience *patience // nil: the server is there
	unknown  bool      // an answer was lost, and the server may still be at it
}

func (d *doing) run(ctx context.Context) (store.Version, error) {
	for {
		v, err := d.try(ctx)
		switch kind := kindOf(err); {
		case err == nil:
			return v, nil
		case errors.Is(err, store.ErrConflict):
			return 0, store.ErrConflict
		case kind == gone:
			return 0, fmt.Errorf("blob of a value: %w", store.ErrGone)
		case kind == lost:
			if d.patience == nil {
				d.patience = d.store.patience()
			}
			if !d.patience.wait(ctx) {
				return 0, cmp.Or(ctx.Err(), fmt.Errorf("postgres does not answer: %w", err))
			}
		case kind == again || kind == stale || kind == twice:
			d.patience = nil
			d.refusals++
			if d.refusals >= d.store.opts.Tries {
				return 0, d.refused(ctx, err)
			}
			pause := min(time.Millisecond<<d.refusals, 100*time.Millisecond)
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(rand.N(pause)):
			}
		default:
			return 0, fmt.Errorf("commit: %w", err)
		}
	}
}

// refused tells guards that do not hold from a server that is merely busy.
func (d *doing) refused(ctx context.Context, err error) error {
	snapshot, problem := d.store.snapshotOn(ctx, d.slot)
	if problem == nil {
		problem = store.Holds(ctx, snapshot, d.commit.Guards, d.commit.Ranges)
	}
	if errors.Is(problem, store.ErrConflict) {
		return store.ErrConflict
	}
	return &BusyError{Tries: d.refusals, Err: err}
}

// try does the commit once, or finds what came of it before.
func (d *doing) try(ctx context.Context) (store.Version, error) {
	s, sl := d.store, d.slot
	// A commit that was cut off may have been done: only its answer tells.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	if err := s.connect(whole, sl); err != nil {
		return 0, err
	}
	if err := s.ready(whole, sl); err != nil {
		return 0, err
	}
	d.unknown = false // ready has waited for the server to be done with it
	if w, ok := s.unsettledWriter(d.commit.ID); ok {
		if err := s.fence(whole, sl.conn, w); err != nil {
			return 0, err
		}
	}
	v, change, err := d.send(whole)
	if err == nil {
		s.usage.add(d.spaces, change)
		return v, nil
	}
	kind := kindOf(err)
	if _, told := errors.AsType[*pgconn.PgError](err); kind == lost || !told && kind != refused {
		// The server did not say that it refused: it may have done it.
		sl.known, d.unknown = false, true
		sl.drop()
		return 0, err
	}
	if rollback := d.rollback(whole); rollback != nil {
		return 0, rollback
	}
	switch kind {
	case refused, twice, gone:
		return d.before(whole, err)
	case stale:
		sl.known = false
	}
	return 0, err
}

// rollback leaves a transaction that failed. Where that does not succeed, the
// server does it: it has refused the commit.
func (d *doing) rollback(ctx context.Context) error {
	if d.slot.conn.IsClosed() || d.slot.conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	if _, err := d.slot.conn.Exec(ctx, "rollback"); err != nil {
		d.slot.drop()
		return err
	}
	return nil
}

// send sends the commit and returns its version and what it changes of spaces.
func (d *doing) send(ctx context.Context) (store.Version, map[string]delta, error) {
	s, b := d.store, &pgx.Batch{}
	b.Queue(beginSQL)
	b.Queue(planSQL)
	if len(d.commit.Ranges) > 0 {
		if err := d.checkRanges(ctx, b); err != nil {
			return 0, nil, err
		}
		b = &pgx.Batch{}
	}
	var v int64
	change := maps.Clone(d.change)
	d.queue(s, b, &v, change)
	next := s.queueRecords(b, d.slot, d.commit.Records)
	b.Queue("commit").Exec(committed)
	if err := d.slot.conn.SendBatch(ctx, b).Close(); err != nil {
		return 0, nil, err
	}
	d.slot.head, d.slot.idle = next, time.Now().Round(0)
	return store.Version(v), change, nil
}

const beforeSQL = "select version from @.commits where id = $1 and version <> 0"

// before returns what a commit of the ID came to earlier, or cause. The row that
// it writes and takes back waits for one that is just being done.
func (d *doing) before(ctx context.Context, cause error) (store.Version, error) {
	s, b := d.store, &pgx.Batch{}
	id := []byte(d.commit.ID)
	var v int64
	b.Queue("begin isolation level read committed")
	b.Queue(s.sql("insert into @.commits (id, version, at) values ($1, 0, now()) on conflict (id) do nothing"), id)
	b.Queue(s.sql(beforeSQL), id).QueryRow(func(r pgx.Row) error {
		if err := r.Scan(&v); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	b.Queue("rollback")
	err := d.slot.conn.SendBatch(ctx, b).Close()
	switch {
	case err != nil:
		d.slot.drop() // nothing was done: it is asked again
		return 0, err
	case v != 0:
		return store.Version(v), nil
	case kindOf(cause) == refused:
		return 0, store.ErrConflict
	}
	return 0, cause // the one that was in the way was not done
}
