package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// What a call leaves: two keys that it read and writes, an undo record, and a
// record of the journal.
const benchKeys = 2000

var (
	benchSpace  = store.Space{Principal: "alice", Package: "notes", Area: "kv"}
	benchUndo   = store.Space{Principal: "alice", Package: "notes", Area: store.AreaUndo}
	benchValue  = []byte(strings.Repeat("v", 200))
	benchRecord = []byte(strings.Repeat("r", 300))
)

// bench is a store with keys, and the versions that each caller left of its own.
type bench struct {
	*Store
	calls    atomic.Int64
	versions []store.Version
}

func newBench(b *testing.B, url string) *bench {
	s := &bench{Store: open(b, Options{URL: fresh(url)}), versions: make([]store.Version, benchKeys)}
	c := &store.Commit{ID: "fill", Time: time.Now()}
	for i := range benchKeys {
		c.Writes = append(c.Writes, store.Write{Key: benchKey(i), Value: benchValue})
	}
	v, err := s.Commit(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	for i := range s.versions {
		s.versions[i] = v
	}
	execute(b, s.Store, "analyze")
	return s
}

func benchKey(i int) store.Key { return store.Key{Space: benchSpace, Name: fmt.Sprint("key ", i)} }

// run shares b.N calls among callers, each of which has keys of its own.
func (s *bench) run(b *testing.B, callers int, call func(caller int, id string, two [2]int) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	per := benchKeys / callers
	var wg sync.WaitGroup
	b.ResetTimer()
	for caller := range callers {
		wg.Go(func() {
			for i := 0; left.Add(-1) >= 0; i += 2 {
				two := [2]int{caller*per + i%per, caller*per + (i+1)%per}
				if err := call(caller, fmt.Sprint("call ", s.calls.Add(1)), two); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCommit(b *testing.B) {
	server := start(b)
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("store/callers=%d", n), func(b *testing.B) {
			s := newBench(b, server.URL())
			s.run(b, n, func(_ int, id string, two [2]int) error { return s.byStore(b.Context(), id, two) })
		})
		for _, way := range []string{"steps", "batch"} {
			b.Run(fmt.Sprintf("direct-%s/callers=%d", way, n), func(b *testing.B) {
				s := newBench(b, server.URL())
				direct := make([]*direct, n)
				for i := range direct {
					direct[i] = newDirect(b, s, fmt.Sprint("direct ", i))
				}
				s.run(b, n, func(caller int, id string, two [2]int) error {
					return direct[caller].commit(b.Context(), id, two, way == "batch")
				})
			})
		}
	}
}

func (s *bench) byStore(ctx context.Context, id string, two [2]int) error {
	c := &store.Commit{ID: id, Time: time.Now(), Records: []store.Record{{Time: time.Now(), Data: benchRecord}}}
	for _, i := range two {
		c.Guards = append(c.Guards, store.Guard{Key: benchKey(i), Version: s.versions[i]})
		c.Writes = append(c.Writes, store.Write{Key: benchKey(i), Value: benchValue})
	}
	c.Writes = append(c.Writes, store.Write{Key: store.Key{Space: benchUndo, Name: id}, Value: benchValue})
	v, err := s.Commit(ctx, c)
	for _, i := range two {
		s.versions[i] = v
	}
	return err
}

// direct does the same by hand, on the same tables: what somebody writes who has
// the same to keep and no store.
type direct struct {
	*bench
	conn   *pgx.Conn
	writer string
	n      int64
	hash   store.Digest
	spaces [2][]byte
}

func newDirect(b *testing.B, s *bench, writer string) *direct {
	conn, err := pgx.ConnectConfig(b.Context(), s.config.Copy())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	execute(b, s.Store, "insert into @.heads (writer, n, hash, epoch, at) values ($1, 0, '', 0, now())", writer)
	return &direct{bench: s, conn: conn, writer: writer, spaces: [2][]byte{spaceID(benchSpace), spaceID(benchUndo)}}
}

const (
	directVersion = "(pg_current_xact_id()::text::bigint)"
	directLive    = `insert into @.live (space, head, mark, tail, principal, package, area, born, class, expires, named, value)
		values ($1, $2, '', '', 'alice', 'notes', 'kv', ` + directVersion + `, 0, 0, 0, $3)
		on conflict (space, head, mark) do update set born = excluded.born, value = excluded.value`
	directOld = `insert into @.replaced (` + replacedColumns + `) select space, head, mark, tail, born, ` + directVersion + `, now(), class, expires, named, value
		from @.live where space = $1 and head = $2 and mark = ''`
)

var errDirect = errors.New("guard does not hold")

// commit sends a batch of reads and one of writes between begin and commit, or
// all in one batch.
func (d *direct) commit(ctx context.Context, id string, two [2]int, whole bool) error {
	for try := range 10 {
		v, err := d.try(ctx, id, two, whole)
		if err == nil {
			for _, i := range two {
				d.versions[i] = store.Version(v)
			}
			return nil
		}
		if _, err := d.conn.Exec(ctx, "rollback"); err != nil {
			return err
		}
		if kindOf(err) != again {
			return err
		}
		time.Sleep(rand.N(time.Millisecond << try))
	}
	return errors.New("busy")
}

func (d *direct) try(ctx context.Context, id string, two [2]int, whole bool) (v int64, err error) {
	b := &pgx.Batch{}
	send := func(last bool) error {
		if whole && !last {
			return nil
		}
		err := d.conn.SendBatch(ctx, b).Close()
		b = &pgx.Batch{}
		return err
	}
	b.Queue(beginSQL)
	b.Queue(planSQL)
	if err := send(false); err != nil {
		return 0, err
	}
	b.Queue(d.sql("insert into @.commits (id, version, at) values ($1, "+directVersion+", now()) returning version"), []byte(id)).
		QueryRow(func(r pgx.Row) error { return r.Scan(&v) })
	for _, i := range two {
		b.Queue(d.sql("select born from @.live where space = $1 and head = $2 and mark = ''"), d.spaces[0], []byte(benchKey(i).Name)).QueryRow(func(r pgx.Row) error {
			var born int64
			if err := r.Scan(&born); err != nil {
				return err
			}
			if store.Version(born) != d.versions[i] {
				return errDirect
			}
			return nil
		})
	}
	if err := send(false); err != nil {
		return 0, err
	}
	for _, i := range two {
		b.Queue(d.sql(directOld), d.spaces[0], []byte(benchKey(i).Name))
		b.Queue(d.sql(directLive), d.spaces[0], []byte(benchKey(i).Name), benchValue)
	}
	b.Queue(d.sql(directLive), d.spaces[1], []byte(id), benchValue)
	r := store.Record{Time: time.Now(), Data: benchRecord}
	hash := store.ChainHash(d.hash, d.writer, uint64(d.n+1), r)
	b.Queue(d.sql("insert into @.records (version, writer, n, prev, hash, time, data) values ("+directVersion+", $1, $2, $3, $4, $5, $6)"),
		d.writer, d.n+1, d.hash[:], hash[:], r.Time.UnixNano(), r.Data)
	b.Queue(d.sql("update @.heads set n = $2, hash = $3 where writer = $1"), d.writer, d.n+1, hash[:])
	if err := send(false); err != nil {
		return 0, err
	}
	b.Queue("commit")
	if err := send(true); err != nil {
		return 0, err
	}
	d.n, d.hash = d.n+1, hash
	return v, nil
}
