package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Bounds of what is removed at once, so that nobody waits long for it.
const (
	pruneRows  = 1000
	pruneBlobs = 50
)

// Ages of what nobody asks for any more. A writer takes a new chain long before
// the end of its old one is forgotten.
const (
	commitAge = 24 * time.Hour
	blobAge   = 24 * time.Hour
	chainIdle = 12 * time.Hour
	chainAge  = 48 * time.Hour
)

// Prune removes what nobody needs any more, a little at a time; see
// [store.Store]. The times of what was replaced are those of the server.
func (s *Store) Prune(ctx context.Context, p store.Prune) error {
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	p.Replaced = max(p.Replaced, store.SnapshotAge)
	defer s.usage.forget()
	for _, step := range []struct {
		what string
		do   func(context.Context, store.Prune) error
	}{
		{"replaced values", s.pruneReplaced},
		{"expired keys", s.pruneExpired},
		{"commits", s.pruneCommits},
		{"records", s.pruneRecords},
		{"chains", s.pruneChains},
		{"blobs", s.pruneBlobs},
	} {
		if err := step.do(ctx, p); err != nil {
			return fmt.Errorf("prune %s: %w", step.what, err)
		}
	}
	return nil
}

// batches runs f, in a transaction, until it has nothing more to do. It can be
// done again where the answer was lost.
func (s *Store) batches(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) (more bool, err error)) error {
	for more := true; more; {
		err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
				more, err = f(ctx, tx)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const replacedSpacesSQL = `with recursive s(space) as (
		(select space from @.replaced order by space limit 1)
		union all
		select (select r.space from @.replaced r where r.space > s.space order by r.space limit 1) from s where s.space is not null)
	select space from s where space is not null`

// The oldest of a space are looked at, and removed as far as they are too old.
const pruneReplacedSQL = `with old as (
		select space, head, mark, died, at from @.replaced where space = $1 order by died limit $2),
	gone as (
		delete from @.replaced r using old o where r.space = o.space and r.head = o.head and r.mark = o.mark and r.died = o.died
		and o.at < $3 returning r.space, r.head, r.mark, r.born, r.died),
	refs as (
		delete from @.refs f using gone g where f.space = g.space and f.head = g.head and f.mark = g.mark and f.born = g.born)
	select count(*), coalesce(max(died), 0) from gone`

func (s *Store) pruneReplaced(ctx context.Context, p store.Prune) error {
	var spaces [][]byte
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql(replacedSpacesSQL))
		if err != nil {
			return err
		}
		spaces, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	})
	if err != nil {
		return err
	}
	for _, space := range spaces {
		err := s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
			var n, died int64
			err := tx.QueryRow(ctx, s.sql(pruneReplacedSQL), space, pruneRows, p.Now.Add(-p.Replaced)).Scan(&n, &died)
			if err != nil || n == 0 {
				return false, err
			}
			_, err = tx.Exec(ctx, s.sql("update @.pruned set died = greatest(died, $1)"), died)
			return n == pruneRows, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// What expired is absent; it is removed when no snapshot is left that saw it.
const pruneExpiredSQL = `with old as (
		select space, head, mark, born from @.live where expires <> 0 and expires < $1 order by expires limit $2),
	gone as (
		delete from @.live l using old o where l.space = o.space and l.head = o.head and l.mark = o.mark and l.born = o.born
		returning l.space, l.head, l.mark, l.born, l.expires),
	refs as (
		delete from @.refs f using gone g where f.space = g.space and f.head = g.head and f.mark = g.mark and f.born = g.born)
	select count(*), coalesce(max(expires), 0) from gone`

func (s *Store) pruneExpired(ctx context.Context, p store.Prune) error {
	return s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
		var n, expired int64
		err := tx.QueryRow(ctx, s.sql(pruneExpiredSQL), p.Now.Add(-p.Replaced).UnixMicro(), pruneRows).Scan(&n, &expired)
		if err != nil || n == 0 {
			return false, err
		}
		_, err = tx.Exec(ctx, s.sql("with "+versionSQL+" update @.pruned set expired = greatest(expired, $1), ended = greatest(ended, v.version) from v"), expired)
		return n == pruneRows, err
	})
}

// The last commit stays: it tells which versions were used.
const pruneCommitsSQL = `with old as (select id, at from @.commits
		where version < (select version from @.commits order by version desc limit 1) order by version limit $1)
	delete from @.commits c using old o where c.id = o.id and o.at < $2`

func (s *Store) pruneCommits(ctx context.Context, p store.Prune) error {
	return s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
		tag, err := tx.Exec(ctx, s.sql(pruneCommitsSQL), pruneRows, p.Now.Add(-commitAge))
		return tag.RowsAffected() == pruneRows, err
	})
}

const (
	journalBytesSQL = "select coalesce(sum(octet_length(data) + 200), 0)::bigint from @.records"
	oldRecordsSQL   = "select version, writer, n, hash, time, octet_length(data) from @.records order by version, writer, n limit $1"
	dropRecordsSQL  = `delete from @.records where (version, writer, n) <= ($1, $2 collate "C", $3)`
	trimSQL         = `insert into @.trims (writer, first, prev) select * from unnest($1::text[], $2::bigint[], $3::bytea[])
		on conflict (writer) do update set first = excluded.first, prev = excluded.prev where trims.first < excluded.first`
)

// pruneRecords removes the oldest records, as they are sorted: so the rest of
// each chain stays whole. Where it begins is kept beside its end.
func (s *Store) pruneRecords(ctx context.Context, p store.Prune) error {
	if p.Records <= 0 && p.RecordBytes <= 0 {
		return nil
	}
	return s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
		excess := int64(0)
		if p.RecordBytes > 0 {
			if err := tx.QueryRow(ctx, s.sql(journalBytesSQL)).Scan(&excess); err != nil {
				return false, err
			}
			excess -= p.RecordBytes
		}
		rows, err := tx.Query(ctx, s.sql(oldRecordsSQL), pruneRows)
		if err != nil {
			return false, err
		}
		var d drop
		for rows.Next() {
			if err := d.row(rows, p, &excess); err != nil {
				return false, err
			}
		}
		if err := rows.Err(); err != nil || d.n == 0 {
			return false, err
		}
		return d.n == pruneRows, d.do(ctx, s, tx)
	})
}

// drop is records that are removed: all up to one.
type drop struct {
	n       int
	done    bool // the rest stays
	version int64
	writer  string
	number  int64
	first   map[string]int64
	prev    map[string][]byte
}

// row takes the next record, if it is too old or among too many.
func (d *drop) row(rows pgx.Rows, p store.Prune, excess *int64) error {
	var version, n, nanos, size int64
	var writer string
	var hash []byte
	if err := rows.Scan(&version, &writer, &n, &hash, &nanos, &size); err != nil {
		return err
	}
	old := p.Records > 0 && time.Unix(0, nanos).Before(p.Now.Add(-p.Records))
	if d.done || !old && *excess <= 0 {
		d.done = true
		return nil
	}
	if d.first == nil {
		d.first, d.prev = map[string]int64{}, map[string][]byte{}
	}
	*excess -= size + 200
	d.n++
	d.version, d.writer, d.number = version, writer, n
	d.first[writer], d.prev[writer] = n+1, hash
	return nil
}

func (d *drop) do(ctx context.Context, s *Store, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, s.sql(dropRecordsSQL), d.version, d.writer, d.number); err != nil {
		return err
	}
	var writers []string
	var first []int64
	var prev [][]byte
	for w, n := range d.first {
		writers, first, prev = append(writers, w), append(first, n), append(prev, d.prev[w])
	}
	_, err := tx.Exec(ctx, s.sql(trimSQL), writers, first, prev)
	return err
}

// Chains that ended long ago, of which no record is left.
const (
	pruneHeadsSQL = `delete from @.heads h where h.at < now() - $1::bigint * interval '1 second'
		and not exists (select from @.records r where r.writer = h.writer)`
	pruneTrimsSQL = "delete from @.trims t where not exists (select from @.heads h where h.writer = t.writer)"
)

func (s *Store) pruneChains(ctx context.Context, _ store.Prune) error {
	return s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
		if _, err := tx.Exec(ctx, s.sql(pruneHeadsSQL), int64(chainAge/time.Second)); err != nil {
			return false, err
		}
		_, err := tx.Exec(ctx, s.sql(pruneTrimsSQL))
		return false, err
	})
}

const pruneBlobsSQL = `with old as (select b.digest from @.blobs b
		where b.digest > $1 and b.touched < $2 and not exists (select from @.refs r where r.digest = b.digest) order by b.digest limit $3),
	gone as (delete from @.blobs b using old o where b.digest = o.digest and b.touched < $2)
	select digest from old order by digest desc limit 1`

// pruneBlobs walks the blobs once. One that a commit names at the same time is
// held by its reference, which makes the batch fail: it is looked at again.
func (s *Store) pruneBlobs(ctx context.Context, p store.Prune) error {
	last, tries := []byte{}, 0
	for {
		err := s.batches(ctx, func(ctx context.Context, tx pgx.Tx) (bool, error) {
			next := last
			err := tx.QueryRow(ctx, s.sql(pruneBlobsSQL), last, p.Now.Add(-blobAge), pruneBlobs).Scan(&next)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return false, nil
			case err != nil:
				return false, err
			}
			last = next
			return true, nil
		})
		if tries++; kindOf(err) != gone || tries == s.opts.Tries {
			return err
		}
	}
}
