package sqlite

import (
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// group is a transaction that writes requests. What it counts is in the file
// when it is finished, and in the store when it is durable.
type group struct {
	s   *Store
	c   *conn
	now time.Time

	started int64 // version before it
	version int64
	record  int64 // of the journal
	journal int64
	horizon int64
	changed bool

	head   head
	linked bool // the head has moved

	spaces map[store.Space]int64
	usage  map[int64]*store.Usage // what is to be added
}

const sqlState = "SELECT version, horizon, record, journal FROM state"

func (s *Store) newGroup(c *conn) (*group, error) {
	g := &group{s: s, c: c, now: time.Now(), spaces: map[store.Space]int64{}, usage: map[int64]*store.Usage{}}
	err := c.row(sqlState, func(r *sqlite3.Stmt) {
		g.version, g.horizon, g.record, g.journal = r.ColumnInt64(0), r.ColumnInt64(1), r.ColumnInt64(2), r.ColumnInt64(3)
	})
	if err != nil {
		return nil, err
	}
	g.started = g.version
	g.head, err = s.chain.load(c)
	return g, err
}

// space returns the number of a space, and makes it where it is new.
func (g *group) space(sp store.Space) (int64, error) {
	id, err := g.known(sp)
	if err != nil || id != 0 {
		return id, err
	}
	err = g.c.exec("INSERT INTO spaces (principal, package, area, keys, bytes) VALUES (?, ?, ?, 0, 0)", sp.Principal, sp.Package, sp.Area)
	if err != nil {
		return 0, err
	}
	id = g.c.LastInsertRowID()
	g.spaces[sp] = id
	g.changed = true
	return id, nil
}

// known returns the number of a space, or 0.
func (g *group) known(sp store.Space) (int64, error) {
	if id := g.spaces[sp]; id != 0 {
		return id, nil
	}
	id, err := g.s.spaces.find(g.c, sp, false)
	if err == nil && id != 0 {
		g.spaces[sp] = id
	}
	return id, err
}

// count adds to what a space takes.
func (g *group) count(space, keys, bytes int64) {
	u := g.usage[space]
	if u == nil {
		u = &store.Usage{}
		g.usage[space] = u
	}
	u.Keys += keys
	u.Bytes += bytes
}

// finish writes what the group counted.
func (g *group) finish() error {
	if !g.changed {
		return nil
	}
	for space, u := range g.usage {
		if *u == (store.Usage{}) {
			continue
		}
		if err := g.c.exec("UPDATE spaces SET keys = keys + ?, bytes = bytes + ? WHERE id = ?", u.Keys, u.Bytes, space); err != nil {
			return err
		}
	}
	if g.linked {
		if err := g.c.exec("UPDATE writers SET n = ?, hash = ? WHERE id = ?", g.head.n, g.head.hash[:], g.head.id); err != nil {
			return err
		}
	}
	return g.c.exec("UPDATE state SET version = ?, horizon = ?, record = ?, journal = ?", g.version, g.horizon, g.record, g.journal)
}

// durable tells the store what the file has now.
func (g *group) durable() {
	g.s.chain.moved(g.head)
	for sp, id := range g.spaces {
		g.s.spaces.Store(sp, id)
	}
}
