package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// sqliteDirect makes the commits by hand, in the tables of the store and with the
// settings of its connection: what somebody writes who has the same to keep and no
// store.
type sqliteDirect struct {
	mu     sync.Mutex
	db     *sqlite3.Conn
	stmts  map[string]*sqlite3.Stmt
	more   *more
	spaces map[string]int64 // by area

	version, writer, record int64
	hash                    store.Digest
}

func newSQLiteDirect(tb testing.TB, folder string, more *more) *sqliteDirect {
	tb.Helper()
	db, err := sqlite3.OpenFlags("file:"+filepath.ToSlash(filepath.Join(folder, "store.db")), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		tb.Fatal(err)
	}
	d := &sqliteDirect{db: db, stmts: map[string]*sqlite3.Stmt{}, more: more, spaces: map[string]int64{}}
	tb.Cleanup(func() {
		for _, s := range d.stmts {
			s.Close()
		}
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	err = db.Exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -8192")
	err = errors.Join(err, d.row("SELECT version FROM state", func(r *sqlite3.Stmt) { d.version = r.ColumnInt64(0) }))
	areas := []string{keySpace.Area}
	if more != nil {
		err = errors.Join(err, d.exec("INSERT INTO writers (name, first, prev, n, hash) VALUES ('direct', 1, ?, 0, ?)", d.hash[:], d.hash[:]))
		d.writer = db.LastInsertRowID()
		areas = append(areas, more.areas()...)
	}
	for _, area := range areas {
		err = errors.Join(err,
			d.exec("INSERT INTO spaces (principal, package, area, keys, bytes) VALUES (?, ?, ?, 0, 0) ON CONFLICT DO NOTHING", keySpace.Principal, keySpace.Package, area),
			d.row("SELECT id FROM spaces WHERE area = ?", func(r *sqlite3.Stmt) { d.spaces[area] = r.ColumnInt64(0) }, area))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func (d *sqliteDirect) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s := d.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = d.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		d.stmts[sql] = s
	}
	var err error
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			err = errors.Join(err, s.BindNull(i+1))
		case int:
			err = errors.Join(err, s.BindInt64(i+1, int64(a)))
		case int64:
			err = errors.Join(err, s.BindInt64(i+1, a))
		case string:
			err = errors.Join(err, s.BindText(i+1, a))
		case []byte:
			err = errors.Join(err, s.BindBlob(i+1, a))
		default:
			err = fmt.Errorf("argument %d: %T", i, a)
		}
	}
	return s, err
}

func (d *sqliteDirect) exec(sql string, args ...any) error {
	s, err := d.bound(sql, args)
	if err != nil {
		return err
	}
	return s.Exec()
}

func (d *sqliteDirect) row(sql string, f func(*sqlite3.Stmt), args ...any) error {
	s, err := d.bound(sql, args)
	if err != nil {
		return err
	}
	if s.Step() {
		f(s)
	}
	return errors.Join(s.Err(), s.Reset())
}

var errMissing = errors.New("key is missing")

// one writes one commit in the transaction that has begun.
func (d *sqliteDirect) one(caller int, n int64) error {
	now := time.Now()
	id := fmt.Sprint("direct ", n)
	d.version++
	if err := d.exec("INSERT INTO commits (version, id, at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", d.version, id, now.UnixNano()); err != nil {
		return err
	}
	space := d.spaces[keySpace.Area]
	for _, i := range pair(caller, n) {
		name := []byte(keyName(i))
		var born, content int64
		err := d.row("SELECT born, class, expires, size, content FROM live WHERE space = ? AND name = ?",
			func(r *sqlite3.Stmt) { born, content = r.ColumnInt64(0), r.ColumnInt64(4) }, space, name)
		if err != nil || born == 0 {
			return errors.Join(err, errMissing)
		}
		err = d.exec("INSERT INTO dead (space, died, name, born, class, expires, content) VALUES (?, ?, ?, ?, ?, ?, ?)", space, d.version, name, born, 0, nil, content)
		if err == nil {
			err = d.put(space, name, value(n), nil)
		}
		if err != nil {
			return err
		}
	}
	if d.more == nil {
		return nil
	}
	for _, w := range d.more.writes(n) {
		var expires any
		if !w.Expires.IsZero() {
			expires = w.Expires.UnixNano()
		}
		if err := d.put(d.spaces[w.Area], []byte(w.Name), w.Value, expires); err != nil {
			return err
		}
	}
	r := store.Record{Time: now, Data: d.more.record}
	prev := d.hash
	d.record++
	d.hash = store.ChainHash(prev, "direct", uint64(d.record), r)
	return d.exec("INSERT INTO records (seq, writer, n, prev, hash, time, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
		d.record, d.writer, d.record, prev[:], d.hash[:], now.UnixNano(), r.Data)
}

func (d *sqliteDirect) put(space int64, name, value []byte, expires any) error {
	if err := d.exec("INSERT INTO contents (parts, value) VALUES (?, ?)", 0, value); err != nil {
		return err
	}
	return d.exec("INSERT OR REPLACE INTO live (space, name, born, class, expires, size, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
		space, name, d.version, 0, expires, len(name)+len(value), d.db.LastInsertRowID())
}

// end writes what is counted, and commits.
func (d *sqliteDirect) end(commits int) error {
	var err error
	if d.more != nil {
		for _, area := range d.more.areas() {
			err = errors.Join(err, d.exec("UPDATE spaces SET keys = keys + ?, bytes = bytes + ? WHERE id = ?", commits, 200*commits, d.spaces[area]))
		}
		err = errors.Join(err, d.exec("UPDATE writers SET n = ?, hash = ? WHERE id = ?", d.record, d.hash[:], d.writer))
	}
	return errors.Join(err,
		d.exec("UPDATE state SET version = ?, horizon = ?, record = ?, journal = ?", d.version, 0, d.record, 0),
		d.exec("COMMIT"))
}

// way writes each commit in a transaction of its own.
func (d *sqliteDirect) way() way {
	return way{"by hand", func(_ context.Context, caller int, n int64) (time.Duration, error) {
		began := time.Now()
		d.mu.Lock()
		defer d.mu.Unlock()
		err := errors.Join(d.exec("BEGIN IMMEDIATE"), d.one(caller, n), d.end(1))
		return time.Since(began), err
	}}
}

// grouped writes the commits that wait, 16 at most, in one transaction.
func (d *sqliteDirect) grouped() way {
	type request struct {
		caller int
		n      int64
		done   chan error
	}
	waiting := make(chan request, mostCalls)
	write := func(first request) {
		group := []request{first}
		for len(group) < mostCalls && len(waiting) > 0 {
			group = append(group, <-waiting)
		}
		err := d.exec("BEGIN IMMEDIATE")
		for _, r := range group {
			err = errors.Join(err, d.one(r.caller, r.n))
		}
		err = errors.Join(err, d.end(len(group)))
		for _, r := range group {
			r.done <- err
		}
	}
	turn := make(chan struct{}, 1)
	return way{"by hand, in groups", func(_ context.Context, caller int, n int64) (time.Duration, error) {
		began := time.Now()
		r := request{caller, n, make(chan error, 1)}
		waiting <- r
		select {
		case err := <-r.done:
			return time.Since(began), err
		case turn <- struct{}{}: // whoever has the turn writes all that wait
			select {
			case first := <-waiting:
				write(first)
			default:
			}
			<-turn
		}
		return time.Since(began), <-r.done
	}}
}
