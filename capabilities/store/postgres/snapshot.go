package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// snapshot is the versions that are seen: all below from, and all below to but
// those that were still being written.
type snapshot struct {
	store    *Store
	from, to int64
	writing  []int64
	now      int64     // microseconds, of the server: what expired until then is absent
	taken    time.Time // of this machine
}

const snapshotSQL = "select base, pg_current_snapshot()::text, " + nowSQL + " from @.meta"

// Snapshot returns the store as it is now, see [store.Store]. Reading it after
// [store.SnapshotAge] returns [store.ErrGone].
func (s *Store) Snapshot(ctx context.Context) (store.Snapshot, error) {
	sn := &snapshot{store: s}
	if err := s.read(ctx, sn.take); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return sn, nil
}

// snapshotOn takes and reads a snapshot on a slot that the caller has.
func (s *Store) snapshotOn(ctx context.Context, sl *slot) (store.Snapshot, error) {
	if err := s.connect(ctx, sl); err != nil {
		return nil, err
	}
	sn := &snapshot{store: s}
	if err := sn.take(ctx, sl.conn); err != nil {
		return nil, err
	}
	return onSlot{sn, sl}, nil
}

func (sn *snapshot) take(ctx context.Context, conn *pgx.Conn) error {
	sn.taken = time.Now()
	var base int64
	var text string
	if err := conn.QueryRow(ctx, sn.store.sql(snapshotSQL)).Scan(&base, &text, &sn.now); err != nil {
		return err
	}
	var err error
	sn.from, sn.to, sn.writing, err = parseSnapshot(text, base)
	return err
}

// parseSnapshot reads what PostgreSQL says of a snapshot: xmin:xmax:xip,xip.
func parseSnapshot(text string, base int64) (from, to int64, writing []int64, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, 0, nil, fmt.Errorf("snapshot %q: want three parts", text)
	}
	writing = []int64{}
	for i, n := range append(parts[:2:2], strings.Split(parts[2], ",")...) {
		if i == 2 && parts[2] == "" {
			break
		}
		xid, err := strconv.ParseInt(n, 10, 64)
		switch {
		case err != nil:
			return 0, 0, nil, fmt.Errorf("snapshot %q: %w", text, err)
		case i == 0:
			from = base + xid
		case i == 1:
			to = base + xid
		default:
			writing = append(writing, base+xid)
		}
	}
	return from, to, writing, nil
}

func (sn *snapshot) args() []any { return []any{sn.now, sn.from, sn.to, sn.writing} }

// What of two tables a snapshot sees; $1 to $4 are its args.
const (
	liveSQL     = "(l.expires = 0 or l.expires > $1) and (l.born < $2 or l.born < $3 and l.born <> all($4::bigint[]))"
	replacedSQL = "(r.died >= $2 and (r.died >= $3 or r.died = any($4::bigint[])))" +
		" and (r.expires = 0 or r.expires > $1) and (r.born < $2 or r.born < $3 and r.born <> all($4::bigint[]))"
)

// prunedSQL tells whether something was removed that the snapshot saw. It comes
// with each answer, so that it is of the same moment. Of those that were still
// being written only commits count: the others may go on for hours.
const prunedSQL = `p.expired > $1 and p.ended >= $2 and (p.ended >= $3 or p.ended = any($4::bigint[])) or p.died >= $3 or p.died >= $2 and exists
	(select from @.commits c where c.version = any($4::bigint[]) and c.version <= p.died)`

const getSQL = "select " + prunedSQL + `, coalesce(e.i, 0), e.born, e.class, e.value from @.pruned p left join lateral (
	select g.i, e.born, e.class, e.value
	from unnest($5::bytea[], $6::bytea[], $7::bytea[]) with ordinality as g(space, head, mark, i)
	cross join lateral (
		select l.born, l.class, l.value from @.live l
		where l.space = g.space and l.head = g.head and l.mark = g.mark and ` + liveSQL + `
		union all
		select r.born, r.class, r.value from @.replaced r
		where r.space = g.space and r.head = g.head and r.mark = g.mark and ` + replacedSQL + `
	) e) e on true`

// Get returns the entries of keys, see [store.Snapshot].
func (sn *snapshot) Get(ctx context.Context, ks ...store.Key) ([]store.Entry, error) {
	return sn.get(ctx, sn.store.read, ks)
}

// runner runs a query on a connection.
type runner func(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error

func (sn *snapshot) get(ctx context.Context, run runner, ks []store.Key) ([]store.Entry, error) {
	if err := sn.old(); err != nil {
		return nil, err
	}
	cols, entries := newKeys(len(ks)), make([]store.Entry, len(ks))
	for i, k := range ks {
		if len(k.Name) > store.MaxName {
			k.Name = k.Name[:store.MaxName] + "." // no key is as long, nor has it
		}
		cols.add(k)
		entries[i].Key = ks[i]
	}
	if len(ks) == 0 {
		return entries, nil
	}
	args := append(sn.args(), cols.space, cols.head, cols.marks)
	err := run(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sn.store.sql(getSQL), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var i int64
			e, ok, err := sn.entry(rows, &i)
			switch {
			case err != nil:
				return err
			case ok:
				e.Key = ks[i-1]
				entries[i-1] = e
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return entries, nil
}

// entry reads a row: what was pruned, columns of the caller, and an entry or, in
// place of none at all, nothing.
func (sn *snapshot) entry(rows pgx.Rows, columns ...any) (e store.Entry, ok bool, err error) {
	var pruned bool
	var born *int64
	var class *int16
	into := append(append([]any{&pruned}, columns...), &born, &class, &e.Value)
	switch err := rows.Scan(into...); {
	case err != nil:
		return e, false, err
	case pruned:
		return e, false, errTooOld
	case born == nil:
		return e, false, nil
	}
	e.Version, e.Class = store.Version(*born), uint8(*class)
	return e, true, nil
}

// errTooOld: what the snapshot saw may have been removed.
var errTooOld = fmt.Errorf("snapshot is too old: %w", store.ErrGone)

// Scan returns the first entries of a range, see [store.Snapshot].
func (sn *snapshot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	return sn.scan(ctx, sn.store.read, r, limit)
}

func (sn *snapshot) scan(ctx context.Context, run runner, r store.Range, limit int) ([]store.Entry, error) {
	if err := sn.old(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	whereLive, args := bounds("l", 6, r)
	whereReplaced, _ := bounds("r", 6, r)
	sql := "select " + prunedSQL + ", e.head, e.tail, e.born, e.class, e.value from @.pruned p left join lateral (" +
		"(select l.head, l.tail, l.born, l.class, l.value from @.live l where " + whereLive + " and " + liveSQL +
		" order by l.head, l.tail limit $5) union all " +
		"(select r.head, r.tail, r.born, r.class, r.value from @.replaced r where " + whereReplaced + " and " + replacedSQL +
		" order by r.head, r.tail limit $5) order by head, tail limit $5) e on true order by e.head, e.tail"
	args = append(append(sn.args(), int64(limit)), args...)
	var entries []store.Entry
	err := run(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		entries = nil
		rows, err := conn.Query(ctx, sn.store.sql(sql), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var head, tail []byte
			e, ok, err := sn.entry(rows, &head, &tail)
			switch {
			case err != nil:
				return err
			case ok:
				e.Key = store.Key{Space: r.Space, Name: string(head) + string(tail)}
				entries = append(entries, e)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return entries, nil
}

// old refuses a snapshot that may no longer be whole.
func (sn *snapshot) old() error {
	if time.Since(sn.taken) > store.SnapshotAge {
		return errTooOld
	}
	return nil
}

// onSlot is a snapshot that is read on one slot, by whoever has it.
type onSlot struct {
	*snapshot
	slot *slot
}

func (o onSlot) run(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error {
	return o.store.bounded(ctx, o.slot, f)
}

func (o onSlot) Get(ctx context.Context, ks ...store.Key) ([]store.Entry, error) {
	return o.get(ctx, o.run, ks)
}

func (o onSlot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	return o.scan(ctx, o.run, r, limit)
}
