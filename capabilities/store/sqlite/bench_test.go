package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// What a call leaves: two keys that it read and writes, an undo record, and a
// record of the journal.
const benchKeys = 2000

var benchSpace, benchUndo = store.Space{Principal: "alice", Package: "notes", Area: "kv"}, store.Space{Principal: "alice", Package: "notes", Area: store.AreaUndo}

var benchValue, benchRecord = []byte(strings.Repeat("v", 200)), []byte(strings.Repeat("r", 300))

type benchCall struct{ n atomic.Int64 }

// next returns two keys of the caller's own, so that conflicts are not measured.
func (b *benchCall) next(caller, callers int) (n int64, keys [2]string) {
	n = b.n.Add(1)
	per := int64(benchKeys / callers)
	at := int64(caller) * per
	return n, [2]string{fmt.Sprint("key ", at+n*2%per), fmt.Sprint("key ", at+(n*2+1)%per)}
}

func benchStore(b *testing.B) *Store {
	s := opened(b, b.TempDir())
	for at := 0; at < benchKeys; at += 500 {
		c := &store.Commit{ID: fmt.Sprint("fill ", at), Time: time.Now()}
		for i := at; i < at+500; i++ {
			c.Writes = append(c.Writes, store.Write{Key: store.Key{Space: benchSpace, Name: fmt.Sprint("key ", i)}, Value: benchValue})
		}
		if _, err := s.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func callers(b *testing.B, run func(b *testing.B, callers int, call func(caller int) error), call func(caller, callers int) error) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", n), func(b *testing.B) {
			run(b, n, func(caller int) error { return call(caller, n) })
		})
	}
}

func spread(b *testing.B, callers int, call func(caller int) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for caller := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(caller); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCommit(b *testing.B) {
	var s *Store
	var calls *benchCall
	versions := sync.Map{}
	callers(b, func(b *testing.B, n int, call func(int) error) {
		s, calls = benchStore(b), &benchCall{}
		versions.Clear()
		spread(b, n, call)
	}, func(caller, callers int) error {
		n, keys := calls.next(caller, callers)
		c := &store.Commit{ID: fmt.Sprint("call ", n), Time: time.Now(), Records: []store.Record{{Time: time.Now(), Data: benchRecord}}}
		for _, k := range keys {
			key := store.Key{Space: benchSpace, Name: k}
			v, ok := versions.Load(k)
			if !ok {
				v = store.Version(1 + benchIndex(k)/500)
			}
			c.Guards = append(c.Guards, store.Guard{Key: key, Version: v.(store.Version)})
			c.Writes = append(c.Writes, store.Write{Key: key, Value: benchValue})
		}
		c.Writes = append(c.Writes, store.Write{Key: store.Key{Space: benchUndo, Name: c.ID}, Value: benchValue})
		v, err := s.Commit(b.Context(), c)
		for _, k := range keys {
			versions.Store(k, v)
		}
		return err
	})
}

func benchIndex(key string) (n int) {
	_, _ = fmt.Sscanf(key, "key %d", &n)
	return n
}

// direct is the same by hand: the statements of one commit, in the same schema.
type direct struct {
	sync.Mutex
	c                    *conn
	space, undo          int64
	version, record, own int64
	hash                 store.Digest
}

func (d *direct) one(n int64, keys [2]string) error {
	now := time.Now().UnixNano()
	id := fmt.Sprint("call ", n)
	d.version++
	if err := d.c.exec("INSERT INTO commits (version, id, at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", d.version, id, now); err != nil {
		return err
	}
	for _, k := range keys {
		var born, content int64
		err := d.c.row(sqlLive, func(r *sqlite3.Stmt) { born, content = r.ColumnInt64(0), r.ColumnInt64(4) }, d.space, name(k))
		if err != nil || born == 0 {
			return errors.Join(err, errors.New("key is missing"))
		}
		err = d.c.exec("INSERT INTO dead (space, died, name, born, class, expires, content) VALUES (?, ?, ?, ?, ?, ?, ?)", d.space, d.version, name(k), born, 0, nil, content)
		if err != nil {
			return err
		}
		if err := d.put(d.space, k); err != nil {
			return err
		}
	}
	if err := d.put(d.undo, id); err != nil {
		return err
	}
	if err := d.c.exec("UPDATE spaces SET keys = keys + ?, bytes = bytes + ? WHERE id = ?", 1, 200, d.undo); err != nil {
		return err
	}
	prev := d.hash
	d.record++
	d.hash = store.ChainHash(prev, "direct", uint64(d.record), store.Record{Data: benchRecord})
	err := d.c.exec("INSERT INTO records (seq, writer, n, prev, hash, time, data) VALUES (?, ?, ?, ?, ?, ?, ?)", d.record, 1, d.record, prev[:], d.hash[:], now, benchRecord)
	if err != nil {
		return err
	}
	return nil
}

func (d *direct) put(space int64, key string) error {
	if err := d.c.exec("INSERT INTO contents (parts, value) VALUES (?, ?)", 0, benchValue); err != nil {
		return err
	}
	return d.c.exec("INSERT OR REPLACE INTO live (space, name, born, class, expires, size, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
		space, name(key), d.version, 0, nil, 200, d.c.LastInsertRowID())
}

func (d *direct) end() error {
	if err := d.c.exec("UPDATE writers SET n = ?, hash = ? WHERE id = ?", d.record, d.hash[:], d.own); err != nil {
		return err
	}
	if err := d.c.exec("UPDATE state SET version = ?, horizon = ?, record = ?, journal = ?", d.version, 0, d.record, d.record); err != nil {
		return err
	}
	return d.c.exec("COMMIT")
}

func benchDirect(b *testing.B) *direct {
	s := benchStore(b)
	d := &direct{c: s.queue.c, version: 4}
	if err := s.Append(b.Context(), store.Record{Data: benchRecord}); err != nil {
		b.Fatal(err)
	}
	d.own, d.record = s.chain.head.id, 1
	var err error
	if d.space, err = s.spaces.find(d.c, benchSpace, true); err != nil {
		b.Fatal(err)
	}
	if err := d.c.exec("INSERT INTO spaces (principal, package, area, keys, bytes) VALUES ('alice', 'notes', 'undo', 0, 0)"); err != nil {
		b.Fatal(err)
	}
	d.undo = d.c.LastInsertRowID()
	return d
}

// BenchmarkDirect writes each commit in a transaction of its own.
func BenchmarkDirect(b *testing.B) {
	var d *direct
	var calls *benchCall
	callers(b, func(b *testing.B, n int, call func(int) error) {
		d, calls = benchDirect(b), &benchCall{}
		spread(b, n, call)
	}, func(caller, callers int) error {
		n, keys := calls.next(caller, callers)
		d.Lock()
		defer d.Unlock()
		return errors.Join(d.c.begin(), d.one(n, keys), d.end())
	})
}

// BenchmarkDirectGroup writes many commits in one transaction, by one hand. With
// 16 callers the store has groups of about half of them: the others are on their
// way back meanwhile.
func BenchmarkDirectGroup(b *testing.B) {
	for _, size := range []int{8, 16} {
		b.Run(fmt.Sprint("size=", size), func(b *testing.B) {
			d, calls := benchDirect(b), &benchCall{}
			b.ResetTimer()
			for done := 0; done < b.N; done += size {
				err := d.c.begin()
				for caller := range min(size, b.N-done) {
					n, keys := calls.next(caller, size)
					err = errors.Join(err, d.one(n, keys))
				}
				if err = errors.Join(err, d.end()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
