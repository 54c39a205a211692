package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// partSize is how much of a value is in one row. The engine's memory grows with
// the largest one and does not shrink.
const partSize = 1 << 20

// Commit does c as a whole or not at all. One that waits for others is given up
// when ctx ends; once it is being written it is completed.
func (s *Store) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if err := sound(c); err != nil {
		return 0, err
	}
	var v int64
	err := s.queue.do(ctx, func(g *group) (err error) {
		v, err = g.commit(c)
		return err
	})
	if err != nil {
		return 0, err
	}
	return store.Version(v), nil
}

// sound checks what can be told without the store.
func sound(c *store.Commit) error {
	if c.ID == "" {
		return errors.New("commit has no ID")
	}
	seen := make(map[store.Key]bool, len(c.Writes))
	for _, w := range c.Writes {
		if len(w.Name) > store.MaxName {
			return fmt.Errorf("name of %d bytes: %w", len(w.Name), store.ErrTooLarge)
		}
		if len(w.Value) > store.MaxValue {
			return fmt.Errorf("value of %d bytes: %w", len(w.Value), store.ErrTooLarge)
		}
		if seen[w.Key] {
			return fmt.Errorf("commit writes key %q twice", w.Name)
		}
		seen[w.Key] = true
	}
	return nil
}

// commit returns the version of c, which may have been done before. All that can
// refuse it is checked before anything is written.
func (g *group) commit(c *store.Commit) (int64, error) {
	b := &batch{group: g, rows: make(map[store.Key]*row, len(c.Guards)+len(c.Writes))}
	err := b.check(c)
	if r, ok := errors.AsType[refusal](err); ok {
		v, err := g.answered(c.ID)
		if err != nil || v != 0 {
			return v, err
		}
		return 0, r
	}
	if err != nil {
		return 0, err
	}
	return b.do(c)
}

// answered returns the version of a commit that was done, or 0.
func (g *group) answered(id string) (v int64, err error) {
	err = g.c.row("SELECT version FROM commits WHERE id = ?", func(r *sqlite3.Stmt) { v = r.ColumnInt64(0) }, id)
	return v, err
}

// row is a live key. One that is not there has version 0, and one that expired
// is there and counts as absent.
type row struct {
	space, born, class, size, content int64
	expires                           int64 // 0: never
}

func (r *row) version(now time.Time) store.Version {
	if r.born == 0 || r.expires != 0 && r.expires <= now.UnixNano() {
		return 0
	}
	return store.Version(r.born)
}

// batch is a commit being done, with the keys that it has looked at.
type batch struct {
	*group
	rows  map[store.Key]*row
	sizes map[store.Digest]int64 // of blobs
}

const sqlLive = "SELECT born, class, expires, size, content FROM live WHERE space = ? AND name = ?"

// row returns what is at a key now.
func (b *batch) row(k store.Key) (*row, error) {
	if r := b.rows[k]; r != nil {
		return r, nil
	}
	space, err := b.known(k.Space)
	if err != nil {
		return nil, err
	}
	r := &row{space: space}
	if space != 0 {
		err = b.c.row(sqlLive, func(s *sqlite3.Stmt) {
			r.born, r.class, r.expires, r.size, r.content = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnInt64(4)
		}, space, name(k.Name))
	}
	b.rows[k] = r
	return r, err
}

func (b *batch) check(c *store.Commit) error {
	for _, g := range c.Guards {
		r, err := b.row(g.Key)
		if err != nil {
			return err
		}
		if r.version(b.now) != g.Version {
			return refuse(store.ErrConflict)
		}
	}
	for _, g := range c.Ranges {
		digest, err := b.digest(g)
		if err != nil {
			return err
		}
		if digest != g.Digest {
			return refuse(store.ErrConflict)
		}
	}
	for _, w := range c.Writes {
		for _, d := range w.Blobs {
			if err := b.size(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounds writes the condition of a range, and returns its arguments.
func bounds(r store.Range, sql string, args ...any) (string, []any) {
	sql += " AND name >= ?"
	args = append(args, name(r.From))
	if r.To != "" {
		sql += " AND name < ?"
		args = append(args, name(r.To))
	}
	return sql, args
}

// digest returns the digest of what a range has now.
func (b *batch) digest(g store.RangeGuard) (string, error) {
	d := store.NewRangeDigest(g.NamesOnly)
	space, err := b.known(g.Space)
	if err != nil || space == 0 {
		return d.Sum(), err
	}
	sql, args := bounds(g.Range, "SELECT name, born, class, expires FROM live WHERE space = ?", space)
	err = b.c.rows(sql+" ORDER BY name", func(s *sqlite3.Stmt) bool {
		r := row{born: s.ColumnInt64(1), expires: s.ColumnInt64(3)}
		if v := r.version(b.now); v != 0 {
			d.Add(string(s.ColumnRawBlob(0)), v, uint8(s.ColumnInt(2)))
		}
		return true
	}, args...)
	return d.Sum(), err
}

// size looks up a blob that is to be named.
func (b *batch) size(d store.Digest) error {
	if _, ok := b.sizes[d]; ok {
		return nil
	}
	n := int64(-1)
	err := b.c.row("SELECT size FROM blobs WHERE digest = ?", func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) }, d[:])
	if err != nil {
		return err
	}
	if n < 0 {
		return refuse(fmt.Errorf("blob %v: %w", d, store.ErrGone))
	}
	if b.sizes == nil {
		b.sizes = map[store.Digest]int64{}
	}
	b.sizes[d] = n
	return nil
}

// do writes what was checked, unless the ID was used.
func (b *batch) do(c *store.Commit) (int64, error) {
	err := b.c.exec("INSERT INTO commits (version, id, at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", b.version+1, c.ID, b.now.UnixNano())
	if err != nil {
		return 0, err
	}
	if b.c.Changes() == 0 {
		return b.answered(c.ID)
	}
	b.version++
	b.changed = true
	for _, w := range c.Writes {
		if err := b.write(w); err != nil {
			return 0, err
		}
	}
	for _, r := range c.Records {
		if err := b.log(r); err != nil {
			return 0, err
		}
	}
	return b.version, nil
}

// write replaces what is at a key. The old value stays for snapshots.
func (b *batch) write(w store.Write) error {
	r, err := b.row(w.Key)
	if err != nil {
		return err
	}
	if r.born != 0 {
		if err := b.retire(r, w.Name); err != nil {
			return err
		}
	}
	if w.Delete {
		if r.born == 0 {
			return nil
		}
		return b.c.exec("DELETE FROM live WHERE space = ? AND name = ?", r.space, name(w.Name))
	}
	if r.space == 0 {
		if r.space, err = b.space(w.Space); err != nil {
			return err
		}
	}
	size := int64(len(w.Name) + len(w.Value))
	content, err := b.keep(w)
	if err != nil {
		return err
	}
	for _, d := range unique(w.Blobs) {
		size += b.sizes[d]
	}
	var expires any
	if !w.Expires.IsZero() {
		expires = max(w.Expires.UnixNano(), 1)
	}
	b.count(r.space, 1, size)
	return b.c.exec("INSERT OR REPLACE INTO live (space, name, born, class, expires, size, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.space, name(w.Name), b.version, int(w.Class), expires, size, content)
}

// retire makes a live row one that snapshots alone see.
func (g *group) retire(r *row, n string) error {
	var expires any
	if r.expires != 0 {
		expires = r.expires
	}
	g.count(r.space, -1, -r.size)
	return g.c.exec("INSERT INTO dead (space, died, name, born, class, expires, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.space, g.version, name(n), r.born, r.class, expires, r.content)
}

// keep writes a value, and which blobs it names.
func (b *batch) keep(w store.Write) (int64, error) {
	first, rest := w.Value, []byte(nil)
	if len(first) > partSize {
		first, rest = first[:partSize], first[partSize:]
	}
	if err := b.c.exec("INSERT INTO contents (parts, value) VALUES (?, ?)", (len(rest)+partSize-1)/partSize, first); err != nil {
		return 0, err
	}
	id := b.c.LastInsertRowID()
	for part := 0; len(rest) > 0; part++ {
		n := min(len(rest), partSize)
		if err := b.c.exec("INSERT INTO parts (content, part, value) VALUES (?, ?, ?)", id, part, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	for _, d := range unique(w.Blobs) {
		if err := b.c.exec("INSERT INTO refs (content, digest) VALUES (?, ?)", id, d[:]); err != nil {
			return 0, err
		}
	}
	return id, nil
}

func unique(ds []store.Digest) []store.Digest {
	if len(ds) < 2 {
		return ds
	}
	seen := map[store.Digest]bool{}
	var out []store.Digest
	for _, d := range ds {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}
