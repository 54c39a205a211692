package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// snapshot is a version, and the time that decides on what has expired.
type snapshot struct {
	s       *Store
	version int64
	at      int64 // nanoseconds since 1970
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot(ctx context.Context) (store.Snapshot, error) {
	out := &snapshot{s: s}
	err := s.read(ctx, func(c *conn) error {
		out.at = time.Now().UnixNano()
		return c.row(sqlState, func(r *sqlite3.Stmt) { out.version = r.ColumnInt64(0) })
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// read lets f read.
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.told(ctx, s.readers.read(ctx, f))
}

// Get returns the entries of keys, in their order. A snapshot that is too old is
// [store.ErrGone].
func (n *snapshot) Get(ctx context.Context, keys ...store.Key) ([]store.Entry, error) {
	out := make([]store.Entry, len(keys))
	err := n.s.read(ctx, func(c *conn) error {
		for i, k := range keys {
			out[i] = store.Entry{Key: k}
			if err := n.get(c, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const sqlDead = "SELECT born, class, expires, content FROM dead WHERE space = ? AND died > ? AND name = ? AND born <= ? LIMIT 1"

// get reads one entry. What was live once is dead for ever: a row that the first
// statement no longer finds is there for the second one.
func (n *snapshot) get(c *conn, e *store.Entry) error {
	space, err := n.s.spaces.find(c, e.Space, true)
	if err != nil || space == 0 {
		return err
	}
	var r row
	err = c.row(sqlLive, func(s *sqlite3.Stmt) {
		r = row{born: s.ColumnInt64(0), class: s.ColumnInt64(1), expires: s.ColumnInt64(2), content: s.ColumnInt64(4)}
	}, space, name(e.Name))
	if err != nil {
		return err
	}
	if r.born == 0 || r.born > n.version {
		r = row{}
		err = c.row(sqlDead, func(s *sqlite3.Stmt) {
			r = row{born: s.ColumnInt64(0), class: s.ColumnInt64(1), expires: s.ColumnInt64(2), content: s.ColumnInt64(3)}
		}, space, n.version, name(e.Name), n.version)
		if err != nil {
			return err
		}
		if r.born == 0 {
			return n.readable(c)
		}
	}
	if r.expires != 0 && r.expires <= n.at {
		return nil
	}
	e.Version, e.Class = store.Version(r.born), uint8(r.class)
	e.Value, err = n.value(c, r.content)
	return err
}

// value reads a content.
func (n *snapshot) value(c *conn, content int64) ([]byte, error) {
	var out []byte
	parts, found := 0, false
	err := c.row("SELECT value, parts FROM contents WHERE id = ?", func(s *sqlite3.Stmt) {
		parts, found = s.ColumnInt(1), true
		if parts > 0 {
			out = make([]byte, 0, (parts+1)*partSize)
		}
		out = s.ColumnBlob(0, out)
	}, content)
	if err != nil {
		return nil, err
	}
	if parts > 0 {
		err = c.rows("SELECT value FROM parts WHERE content = ? ORDER BY part", func(s *sqlite3.Stmt) bool {
			parts--
			out = append(out, s.ColumnRawBlob(0)...)
			return true
		}, content)
		if err != nil {
			return nil, err
		}
	}
	if found && parts == 0 {
		return out, nil
	}
	if err := n.readable(c); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("content %d has no value: %w", content, sqlite3.CORRUPT)
}

// readable tells whether all that the snapshot shows was still there until now.
func (n *snapshot) readable(c *conn) error {
	var horizon int64
	if err := c.row(sqlState, func(s *sqlite3.Stmt) { horizon = s.ColumnInt64(1) }); err != nil {
		return err
	}
	if n.version < horizon {
		return fmt.Errorf("snapshot %d: %w", n.version, store.ErrGone)
	}
	return nil
}

// Scan returns the first entries of a range, at most limit. A snapshot that is
// too old is [store.ErrGone].
func (n *snapshot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	var out []store.Entry
	err := n.s.read(ctx, func(c *conn) error {
		if limit <= 0 {
			return nil
		}
		space, err := n.s.spaces.find(c, r.Space, true)
		if err != nil || space == 0 {
			return err
		}
		var contents []int64
		sql, args := n.both(space, r, limit)
		err = c.rows(sql, func(s *sqlite3.Stmt) bool {
			out = append(out, store.Entry{
				Key:     store.Key{Space: r.Space, Name: string(s.ColumnRawBlob(0))},
				Version: store.Version(s.ColumnInt64(1)), Class: uint8(s.ColumnInt(2)),
			})
			contents = append(contents, s.ColumnInt64(3))
			return true
		}, args...)
		if err != nil {
			return err
		}
		for i, id := range contents {
			if out[i].Value, err = n.value(c, id); err != nil {
				return err
			}
		}
		return n.readable(c)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// both is the statement that reads a range from what is live and what was
// replaced since, as of one moment.
func (n *snapshot) both(space int64, r store.Range, limit int) (string, []any) {
	const columns = "SELECT name, born, class, content FROM "
	live, args := bounds(r, columns+"live WHERE space = ?", space)
	live += " AND born <= ? AND (expires IS NULL OR expires > ?)"
	args = append(args, n.version, n.at)
	dead, more := bounds(r, columns+"dead WHERE space = ? AND died > ?", space, n.version)
	dead += " AND born <= ? AND (expires IS NULL OR expires > ?)"
	args = append(args, more...)
	args = append(args, n.version, n.at, limit)
	return live + " UNION ALL " + dead + " ORDER BY name LIMIT ?", args
}

// Usage returns what the live keys of a space take; those that expired count
// until they are pruned.
func (s *Store) Usage(ctx context.Context, sp store.Space) (u store.Usage, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.row("SELECT keys, bytes FROM spaces WHERE principal = ? AND package = ? AND area = ?", func(r *sqlite3.Stmt) {
			u = store.Usage{Keys: r.ColumnInt64(0), Bytes: r.ColumnInt64(1)}
		}, sp.Principal, sp.Package, sp.Area)
	})
	return u, err
}

// Spaces returns the spaces that have live keys.
func (s *Store) Spaces(ctx context.Context) (out []store.Space, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.rows("SELECT principal, package, area FROM spaces WHERE keys > 0 ORDER BY principal, package, area", func(r *sqlite3.Stmt) bool {
			out = append(out, store.Space{Principal: r.ColumnText(0), Package: r.ColumnText(1), Area: r.ColumnText(2)})
			return true
		})
	})
	return out, err
}
