package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// postgresDirect makes the commits by hand, in the tables of the store, on one
// connection of a caller: what somebody writes who has the same to keep and no
// store.
type postgresDirect struct {
	conn   *pgx.Conn
	more   *more
	whole  bool // in one trip to the server, else in four
	space  []byte
	writer string
	n      int64
	hash   store.Digest
}

const (
	postgresVersion = "(pg_current_xact_id()::text::bigint)"
	postgresPlan    = "select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
	postgresOld     = `insert into replaced (space, head, mark, tail, born, died, at, class, expires, named, value)
		select space, head, mark, tail, born, ` + postgresVersion + `, now(), class, expires, named, value from live where space = $1 and head = $2 and mark = ''`
	postgresLive = `insert into live (space, head, mark, tail, principal, package, area, born, class, expires, named, value)
		values ($1, $2, '', '', $3, $4, $5, ` + postgresVersion + `, 0, $6, 0, $7)
		on conflict (space, head, mark) do update set born = excluded.born, value = excluded.value`
	postgresRecord = "insert into records (version, writer, n, prev, hash, time, data) values (" + postgresVersion + ", $1, $2, $3, $4, $5, $6)"
)

// newPostgresDirect connects each of so many callers.
func newPostgresDirect(tb testing.TB, url string, callers int, whole bool, more *more) way {
	tb.Helper()
	all := make([]*postgresDirect, callers)
	for i := range all {
		conn, err := pgx.Connect(tb.Context(), url)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { conn.Close(context.Background()) })
		d := &postgresDirect{conn: conn, more: more, whole: whole, writer: fmt.Sprint("direct ", i)}
		err = errors.Join(
			conn.QueryRow(tb.Context(), "select space from live limit 1").Scan(&d.space),
			d.execute(tb.Context(), "insert into heads (writer, n, hash, epoch, at) values ($1, 0, '', 0, now())", d.writer))
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = d
	}
	if err := all[0].execute(tb.Context(), "analyze"); err != nil {
		tb.Fatal(err)
	}
	name := "by hand, in four trips"
	if whole {
		name = "by hand, in one trip"
	}
	return way{name, func(ctx context.Context, caller int, n int64) (time.Duration, error) {
		began := time.Now()
		err := all[caller].commit(ctx, caller, n)
		return time.Since(began), err
	}}
}

func (d *postgresDirect) execute(ctx context.Context, sql string, args ...any) error {
	_, err := d.conn.Exec(ctx, sql, args...)
	return err
}

// commit tries again what the server refuses for what others do.
func (d *postgresDirect) commit(ctx context.Context, caller int, n int64) error {
	for try := range 12 {
		err := d.try(ctx, caller, n)
		if err == nil {
			return nil
		}
		if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != "40001" && pe.Code != "40P01" {
			return err
		}
		if err := d.execute(ctx, "rollback"); err != nil {
			return err
		}
		time.Sleep(rand.N(time.Millisecond << try))
	}
	return errors.New("busy")
}

func (d *postgresDirect) try(ctx context.Context, caller int, n int64) error {
	b := &pgx.Batch{}
	trip := func(last bool) error {
		if d.whole && !last {
			return nil
		}
		err := d.conn.SendBatch(ctx, b).Close()
		b = &pgx.Batch{}
		return err
	}
	b.Queue("begin isolation level serializable")
	b.Queue(postgresPlan)
	if err := trip(false); err != nil {
		return err
	}
	b.Queue("insert into commits (id, version, at) values ($1, "+postgresVersion+", now())", fmt.Append(nil, "direct ", n))
	for _, i := range pair(caller, n) {
		b.Queue("select born from live where space = $1 and head = $2 and mark = ''", d.space, []byte(keyName(i))).QueryRow(func(r pgx.Row) error {
			var born int64
			return r.Scan(&born)
		})
	}
	if err := trip(false); err != nil {
		return err
	}
	for _, i := range pair(caller, n) {
		b.Queue(postgresOld, d.space, []byte(keyName(i)))
		d.put(b, d.space, store.Write{Key: keyAt(i), Value: value(n)})
	}
	hash := d.records(b, n)
	if err := trip(false); err != nil {
		return err
	}
	b.Queue("commit")
	if err := trip(true); err != nil {
		return err
	}
	if d.more != nil {
		d.n, d.hash = d.n+1, hash
	}
	return nil
}

func (d *postgresDirect) put(b *pgx.Batch, space []byte, w store.Write) {
	expires := int64(0)
	if !w.Expires.IsZero() {
		expires = w.Expires.UnixMicro()
	}
	b.Queue(postgresLive, space, []byte(w.Name), []byte(w.Principal), []byte(w.Package), []byte(w.Area), expires, w.Value)
}

// records writes what is beside the two keys.
func (d *postgresDirect) records(b *pgx.Batch, n int64) (hash store.Digest) {
	if d.more == nil {
		return hash
	}
	for _, w := range d.more.writes(n) {
		space := sha256.Sum256([]byte(w.Area))
		d.put(b, space[:], w)
	}
	r := store.Record{Time: time.Now(), Data: d.more.record}
	hash = store.ChainHash(d.hash, d.writer, uint64(d.n+1), r)
	b.Queue(postgresRecord, d.writer, d.n+1, d.hash[:], hash[:], r.Time.UnixNano(), r.Data)
	b.Queue("update heads set n = $2, hash = $3 where writer = $1", d.writer, d.n+1, hash[:])
	return hash
}
