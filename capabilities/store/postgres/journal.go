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

const readySQL = `insert into @.heads (writer, n, hash, epoch, at) values ($1, 0, $2, 0, now())
	on conflict (writer) do update set epoch = heads.epoch + 1
	returning n, hash, epoch`

// ready learns the end of a slot's chain. The new epoch refuses whatever the
// slot sent before and the server has not done yet.
func (s *Store) ready(ctx context.Context, sl *slot) error {
	sl.begin()
	if sl.known {
		return nil
	}
	var h head
	var hash []byte
	if err := sl.conn.QueryRow(ctx, s.sql(readySQL), sl.writer, h.hash[:]).Scan(&h.n, &hash, &h.epoch); err != nil {
		return fmt.Errorf("chain %s: %w", sl.writer, err)
	}
	if len(hash) != len(h.hash) {
		return fmt.Errorf("chain %s: hash of %d bytes", sl.writer, len(hash))
	}
	copy(h.hash[:], hash)
	sl.head, sl.known = h, true
	s.settled(sl.writer)
	return nil
}

// fence refuses what a writer sent and the server has not done yet.
func (s *Store) fence(ctx context.Context, conn *pgx.Conn, writer string) error {
	if _, err := conn.Exec(ctx, s.sql("update @.heads set epoch = epoch + 1 where writer = $1"), writer); err != nil {
		return err
	}
	s.settled(writer)
	return nil
}

// Where the chain is not what it was taken for, the epoch is null, which its
// column refuses.
const (
	headSQL = `insert into @.heads (writer, n, hash, epoch, at) values ($1, $2, $3, $4, now())
		on conflict (writer) do update set n = excluded.n, hash = excluded.hash, at = excluded.at,
		epoch = case when heads.epoch = excluded.epoch and heads.n = $5 then heads.epoch end`
	recordsSQL = "with " + versionSQL + `
		insert into @.records (version, writer, n, prev, hash, time, data)
		select v.version, $1, r.n, r.prev, r.hash, r.time, r.data
		from v cross join unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bytea[]) as r(n, prev, hash, time, data)`
)

// queueRecords puts records of a slot's chain into a batch and returns the end
// that the chain then has. It moves the end even without records: so no two
// commits of a slot can both be done that do not know of each other.
func (s *Store) queueRecords(b *pgx.Batch, sl *slot, records []store.Record) head {
	h := sl.head
	var n, times []int64
	var prev, hash, data [][]byte
	size := 0
	flush := func() {
		if len(n) > 0 {
			b.Queue(s.sql(recordsSQL), sl.writer, n, prev, hash, times, data)
		}
		n, times, prev, hash, data, size = nil, nil, nil, nil, nil, 0
	}
	for _, r := range records {
		before := h.hash
		h.n++
		h.hash = store.ChainHash(before, sl.writer, uint64(h.n), r)
		after := h.hash
		n, times = append(n, h.n), append(times, r.Time.UnixNano())
		text := r.Data
		if text == nil {
			text = []byte{}
		}
		prev, hash, data = append(prev, before[:]), append(hash, after[:]), append(data, text)
		if size += len(text); len(n) == chunkRows || size > chunkBytes {
			flush()
		}
	}
	flush()
	end := h.hash
	b.Queue(s.sql(headSQL), sl.writer, h.n, end[:], h.epoch, sl.head.n)
	return h
}

// Append writes records that belong to no commit, see [store.Journal].
func (s *Store) Append(ctx context.Context, records ...store.Record) error {
	if len(records) == 0 {
		return nil
	}
	// As a commit, its ID tells what came of it when the answer is lost.
	_, err := s.Commit(ctx, &store.Commit{ID: "append-" + writerID() + writerID(), Time: time.Now(), Records: records})
	return err
}

// Records come from transactions that may end in another order than they began.
// What is below the oldest one that is still being done will get nothing more.
const pageSQL = `select version, writer, n, prev, hash, time, data from @.records
	where (version, writer, n) > ($1, $2 collate "C", $3)
	and version < (select base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint from @.meta)
	order by version, writer, n limit $4`

// Records returns records after a cursor, see [store.Journal]. A record is seen
// when all transactions of the server that began to write before it have ended.
func (s *Store) Records(ctx context.Context, after store.Cursor, limit int) ([]store.Logged, error) {
	version, writer, n, err := parseCursor(after)
	if err != nil || limit <= 0 {
		return nil, err
	}
	var page []store.Logged
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		page = nil
		rows, err := conn.Query(ctx, s.sql(pageSQL), version, writer, n, int64(limit))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			l, err := scanLogged(rows)
			if err != nil {
				return err
			}
			page = append(page, l)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return page, nil
}

func scanLogged(rows pgx.Rows) (store.Logged, error) {
	var l store.Logged
	var version, n, nanos int64
	var prev, hash []byte
	if err := rows.Scan(&version, &l.Writer, &n, &prev, &hash, &nanos, &l.Data); err != nil {
		return l, err
	}
	if len(prev) != len(l.Prev) || len(hash) != len(l.Hash) {
		return l, fmt.Errorf("record %d of %s: hashes of %d and %d bytes", n, l.Writer, len(prev), len(hash))
	}
	copy(l.Prev[:], prev)
	copy(l.Hash[:], hash)
	l.N, l.Time, l.Cursor = uint64(n), time.Unix(0, nanos).UTC(), cursor(version, l.Writer, n)
	return l, nil
}

func cursor(version int64, writer string, n int64) store.Cursor {
	return store.Cursor(fmt.Sprintf("%d:%s:%d", version, writer, n))
}

// parseCursor reads what [cursor] wrote. The empty cursor is before all.
func parseCursor(c store.Cursor) (version int64, writer string, n int64, err error) {
	if c == "" {
		return 0, "", 0, nil
	}
	parts := strings.Split(string(c), ":")
	if len(parts) != 3 {
		return 0, "", 0, fmt.Errorf("cursor %.99q: want three parts", string(c))
	}
	version, err1 := strconv.ParseInt(parts[0], 10, 64)
	n, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil || cursor(version, parts[1], n) != c || strings.ContainsRune(parts[1], 0) {
		return 0, "", 0, fmt.Errorf("cursor %.99q: want version:writer:number", string(c))
	}
	return version, parts[1], n, nil
}

const headsSQL = `select h.writer, h.n, h.hash, coalesce(t.first, 1), t.prev
	from @.heads h left join @.trims t on t.writer = h.writer where h.n > 0 order by h.writer`

// Heads returns the ends of all chains, see [store.Journal].
func (s *Store) Heads(ctx context.Context) ([]store.Head, error) {
	var heads []store.Head
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		heads = nil
		rows, err := conn.Query(ctx, s.sql(headsSQL))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var h store.Head
			var n, first int64
			var hash, prev []byte
			if err := rows.Scan(&h.Writer, &n, &hash, &first, &prev); err != nil {
				return err
			}
			copy(h.Hash[:], hash)
			copy(h.Prev[:], prev)
			h.N, h.First = uint64(n), uint64(first)
			heads = append(heads, h)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	return heads, nil
}
