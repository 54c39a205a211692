package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// recordOverhead is about what a record takes beside its data, in bytes.
const recordOverhead = 128

// chain is the chain of this open store. Only the queue uses it.
type chain struct {
	writer string
	head   head
	sure   bool // the head is that of the file
}

// head is the end of the chain. The writer has no row before its first record.
type head struct {
	id   int64
	n    int64
	hash store.Digest
}

// load returns the head, from the file unless the last commit was a plain success.
func (k *chain) load(c *conn) (head, error) {
	if k.sure {
		k.sure = false
		return k.head, nil
	}
	var h head
	err := c.row("SELECT id, n, hash FROM writers WHERE name = ?", func(r *sqlite3.Stmt) {
		h.id, h.n = r.ColumnInt64(0), r.ColumnInt64(1)
		copy(h.hash[:], r.ColumnRawBlob(2))
	}, k.writer)
	return h, err
}

// moved is called once what h says is durable.
func (k *chain) moved(h head) { k.head, k.sure = h, true }

// log appends a record to the chain.
func (g *group) log(r store.Record) error {
	if g.head.id == 0 {
		err := g.c.exec("INSERT INTO writers (name, first, prev, n, hash) VALUES (?, 1, ?, 0, ?)", g.s.chain.writer, g.head.hash[:], g.head.hash[:])
		if err != nil {
			return err
		}
		g.head.id = g.c.LastInsertRowID()
	}
	prev := g.head.hash
	g.head.n++
	g.head.hash = store.ChainHash(prev, g.s.chain.writer, uint64(g.head.n), r)
	g.record++
	g.journal += int64(len(r.Data)) + recordOverhead
	g.linked, g.changed = true, true
	return g.c.exec("INSERT INTO records (seq, writer, n, prev, hash, time, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
		g.record, g.head.id, g.head.n, prev[:], g.head.hash[:], r.Time.UnixNano(), r.Data)
}

// Append writes records that belong to no commit.
func (s *Store) Append(ctx context.Context, records ...store.Record) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if len(records) == 0 {
		return nil
	}
	return s.queue.do(ctx, func(g *group) error {
		for _, r := range records {
			if err := g.log(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Records returns at most limit records after a cursor, in the order in which
// they were written. A cursor is the number of a record.
func (s *Store) Records(ctx context.Context, after store.Cursor, limit int) (out []store.Logged, err error) {
	var seq uint64
	if after != "" {
		if seq, err = strconv.ParseUint(string(after), 10, 63); err != nil {
			return nil, fmt.Errorf("cursor %q is none of this journal", after)
		}
	}
	err = s.read(ctx, func(c *conn) error {
		return c.rows(`SELECT seq, w.name, r.n, r.prev, r.hash, time, data FROM records r JOIN writers w ON w.id = r.writer
			WHERE seq > ? ORDER BY seq LIMIT ?`, func(r *sqlite3.Stmt) bool {
			l := store.Logged{Cursor: store.Cursor(r.ColumnText(0)), Writer: r.ColumnText(1), N: uint64(r.ColumnInt64(2))}
			copy(l.Prev[:], r.ColumnRawBlob(3))
			copy(l.Hash[:], r.ColumnRawBlob(4))
			l.Record = store.Record{Time: time.Unix(0, r.ColumnInt64(5)).UTC(), Data: r.ColumnBlob(6, nil)}
			out = append(out, l)
			return true
		}, int64(seq), max(limit, 0))
	})
	return out, err
}

// Heads returns the ends of all chains, also of those that have no records left.
func (s *Store) Heads(ctx context.Context) (out []store.Head, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.rows("SELECT name, first, prev, n, hash FROM writers ORDER BY id", func(r *sqlite3.Stmt) bool {
			h := store.Head{Writer: r.ColumnText(0), First: uint64(r.ColumnInt64(1)), N: uint64(r.ColumnInt64(3))}
			copy(h.Prev[:], r.ColumnRawBlob(2))
			copy(h.Hash[:], r.ColumnRawBlob(4))
			out = append(out, h)
			return true
		})
	})
	return out, err
}
