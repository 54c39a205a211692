package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// usageAge is how long what others write may be missing in [Store.Usage].
const usageAge = 5 * time.Second

// usage is what spaces were counted to take, moved on by the commits of this
// store. No row of the database is shared for it by all who write.
type usage struct {
	mu     sync.Mutex
	spaces map[store.Space]counted
}

type counted struct {
	store.Usage
	at time.Time
}

// get returns what was counted and is not too old.
func (u *usage) get(s store.Space) (store.Usage, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c, ok := u.spaces[s]
	return c.Usage, ok && time.Since(c.at) < usageAge
}

func (u *usage) set(s store.Space, n store.Usage, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.spaces == nil {
		u.spaces = map[store.Space]counted{}
	}
	for old, c := range u.spaces {
		if time.Since(c.at) >= usageAge {
			delete(u.spaces, old)
		}
	}
	u.spaces[s] = counted{n, at}
}

// add moves on what was counted by what a commit changed.
func (u *usage) add(spaces map[string]store.Space, change map[string]delta) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, s := range spaces {
		if c, ok := u.spaces[s]; ok {
			c.Keys, c.Bytes = c.Keys+change[id].keys, c.Bytes+change[id].bytes
			u.spaces[s] = c
		}
	}
}

func (u *usage) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.spaces)
}

const usageSQL = "select count(*), coalesce(sum(" + sizeSQL + "), 0)::bigint from @.live l where l.space = $1 and " + aliveSQL

// Usage returns what the live keys of a space take, see [store.Store]. What
// other processes wrote, and what expired, is counted within five seconds. A
// blob counts for each value that names it.
func (s *Store) Usage(ctx context.Context, space store.Space) (store.Usage, error) {
	if err := s.pool.check(ctx); err != nil {
		return store.Usage{}, err
	}
	if n, ok := s.usage.get(space); ok {
		return n, nil
	}
	at := time.Now()
	var n store.Usage
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, s.sql(usageSQL), spaceID(space)).Scan(&n.Keys, &n.Bytes)
	})
	if err != nil {
		return store.Usage{}, fmt.Errorf("usage: %w", err)
	}
	s.usage.set(space, n, at)
	return n, nil
}

// Each space is found by one step in the index, over all the keys of the one
// before.
const spacesSQL = `with recursive s(space) as (
		(select space from @.live order by space limit 1)
		union all
		select (select l.space from @.live l where l.space > s.space order by l.space limit 1) from s where s.space is not null)
	select l.principal, l.package, l.area from s cross join lateral
		(select principal, package, area from @.live l where l.space = s.space and ` + aliveSQL + ` limit 1) l
	where s.space is not null`

// Spaces returns the spaces that have live keys, see [store.Store].
func (s *Store) Spaces(ctx context.Context) ([]store.Space, error) {
	var spaces []store.Space
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		spaces = nil
		rows, err := conn.Query(ctx, s.sql(spacesSQL))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var principal, pkg, area []byte
			if err := rows.Scan(&principal, &pkg, &area); err != nil {
				return err
			}
			spaces = append(spaces, store.Space{Principal: string(principal), Package: string(pkg), Area: string(area)})
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("spaces: %w", err)
	}
	return spaces, nil
}
