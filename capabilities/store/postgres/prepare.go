package postgres

import (
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Bounds of one statement, which becomes one message and one value of an array
// in the server.
const (
	chunkRows  = 2000
	chunkBytes = 16 << 20
)

// Expressions in statements.
const (
	versionSQL = "v as (select base + pg_current_xact_id()::text::bigint as version from @.meta where one)"
	nowSQL     = "(extract(epoch from now()) * 1000000)::bigint"
	aliveSQL   = "(l.expires = 0 or l.expires > " + nowSQL + ")"
)

// A sequential scan would read, and so guard, the whole table: each write
// anywhere would be in the way. The plan that is left needs not be made again.
const (
	beginSQL = "begin isolation level serializable"
	planSQL  = "select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
)

// A commit whose guards do not hold has no time, which its column refuses. So
// all of it can be sent at once.
const commitSQL = "with " + versionSQL + `
	insert into @.commits (id, version, at)
	select $1, v.version, case when not exists (
		select from unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[]) as g(space, head, mark, version)
		where g.version <> coalesce((select l.born from @.live l
			where l.space = g.space and l.head = g.head and l.mark = g.mark and ` + aliveSQL + `), 0)
	) then now() end
	from v returning version`

const (
	replacedColumns = "space, head, mark, tail, born, died, at, class, expires, named, value"
	sizeSQL         = "octet_length(head) + octet_length(tail) + octet_length(value) + named"
	oldSQL          = "select space, count(*), sum(size)::bigint from old group by space"
)

// What is not there is written without being looked for, which would be in the
// way of all who write its neighbours in the index. A guard that such a key is
// absent is then one that it was not there, or has expired: or else it gets no
// version, which its column refuses. The sign of born carries the guard.
const writeSQL = "with " + versionSQL + `,
	w as (select * from unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[],
		$8::smallint[], $9::bigint[], $10::bigint[], $11::bytea[], $12::boolean[])
		as w(space, head, mark, tail, principal, package, area, class, expires, named, value, absent)),
	fresh as (
		insert into @.live (space, head, mark, tail, principal, package, area, born, class, expires, named, value)
		select w.space, w.head, w.mark, w.tail, w.principal, w.package, w.area, v.version, w.class, w.expires, w.named, w.value
		from v cross join w
		on conflict do nothing returning space, head, mark),
	others as materialized (
		select * from w where not exists (select from fresh f where f.space = w.space and f.head = w.head and f.mark = w.mark)),
	old as (
		insert into @.replaced (` + replacedColumns + `)
		select l.space, l.head, l.mark, l.tail, l.born, v.version, now(), l.class, l.expires, l.named, l.value
		from v cross join others o cross join lateral
			(select * from @.live l where l.space = o.space and l.head = o.head and l.mark = o.mark limit 1) l
		returning space, ` + sizeSQL + ` as size),
	new as (
		insert into @.live as l (space, head, mark, tail, principal, package, area, born, class, expires, named, value)
		select o.space, o.head, o.mark, o.tail, o.principal, o.package, o.area,
			case when o.absent then -v.version else v.version end, o.class, o.expires, o.named, o.value
		from v cross join others o
		on conflict (space, head, mark) do update set born = case
			when excluded.born > 0 then excluded.born
			when l.expires <> 0 and l.expires <= ` + nowSQL + ` then -excluded.born end,
		class = excluded.class, expires = excluded.expires, named = excluded.named, value = excluded.value)
	` + oldSQL

const deleteSQL = "with " + versionSQL + `,
	gone as (delete from @.live where space = $1 and head = $2 and mark = $3 returning *),
	old as (
		insert into @.replaced (` + replacedColumns + `)
		select g.space, g.head, g.mark, g.tail, g.born, v.version, now(), g.class, g.expires, g.named, g.value from gone g cross join v
		returning space, ` + sizeSQL + ` as size)
	` + oldSQL

const refSQL = "with " + versionSQL + `
	insert into @.refs (space, head, mark, born, digest)
	select r.space, r.head, r.mark, v.version, r.digest
	from v cross join unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[]) as r(space, head, mark, digest)`

// statement is one with its arguments.
type statement struct {
	sql  string
	args []any
}

// prepared is a commit as statements, but for the records, whose hashes depend
// on the chain.
type prepared struct {
	commit *store.Commit
	guards []any // arguments of commitSQL
	writes []statement
	refs   []statement
	change map[string]delta // what the writes add, by the hash of the space
	spaces map[string]store.Space
}

// delta is what a commit changes of a space.
type delta struct{ keys, bytes int64 }

// check refuses what no store takes.
func check(c *store.Commit) error {
	switch {
	case c.ID == "":
		return errors.New("commit: no ID")
	case len(c.ID) > headSize:
		return fmt.Errorf("commit: ID of %d bytes: %w", len(c.ID), store.ErrTooLarge)
	}
	for _, g := range c.Guards {
		if len(g.Name) > store.MaxName {
			return tooLong(g.Key)
		}
	}
	seen := make(map[store.Key]bool, len(c.Writes))
	for _, w := range c.Writes {
		switch {
		case len(w.Name) > store.MaxName:
			return tooLong(w.Key)
		case len(w.Value) > store.MaxValue:
			return fmt.Errorf("value of %d bytes: %w", len(w.Value), store.ErrTooLarge)
		case seen[w.Key]:
			return fmt.Errorf("commit: two writes of %.99q", w.Name)
		}
		seen[w.Key] = true
	}
	return nil
}

// prepare puts a commit in columns. Sizes are those of the blobs that it names.
func prepare(c *store.Commit, sizes map[store.Digest]int64) *prepared {
	p := &prepared{commit: c, change: map[string]delta{}, spaces: map[string]store.Space{}}
	g := newKeys(len(c.Guards))
	versions := make([]int64, 0, len(c.Guards))
	absent := make(map[store.Key]bool)
	for _, w := range c.Writes {
		if !w.Delete {
			absent[w.Key] = false
		}
	}
	for _, guard := range c.Guards {
		if _, ok := absent[guard.Key]; ok && guard.Version == 0 {
			absent[guard.Key] = true // the write sees to it
			continue
		}
		g.add(guard.Key)
		versions = append(versions, int64(guard.Version))
	}
	p.guards = []any{[]byte(c.ID), g.space, g.head, g.marks, versions}
	p.write(c.Writes, sizes, absent)
	p.name(c.Writes)
	return p
}

func tooLong(k store.Key) error {
	return fmt.Errorf("name of %d bytes: %w", len(k.Name), store.ErrTooLarge)
}

// columns are those of a chunk of writes.
type columns struct {
	*keys
	tail, principal, pkg, area, value [][]byte
	class                             []int16
	expires, named                    []int64
	absent                            []bool
	size                              int
}

func (c *columns) statement() statement {
	return statement{writeSQL, []any{c.space, c.head, c.marks, c.tail, c.principal, c.pkg, c.area, c.class, c.expires, c.named, c.value, c.absent}}
}

// add adds a write, of a key that has to be absent or need not.
func (c *columns) add(w store.Write, named int64, absent bool) {
	c.tail = append(c.tail, c.keys.add(w.Key))
	c.principal = append(c.principal, []byte(w.Principal))
	c.pkg = append(c.pkg, []byte(w.Package))
	c.area = append(c.area, []byte(w.Area))
	c.class = append(c.class, int16(w.Class))
	c.expires = append(c.expires, expiry(w.Expires))
	c.named = append(c.named, named)
	c.absent = append(c.absent, absent)
	c.value = append(c.value, orEmpty(w.Value))
	c.size += len(w.Name) + len(w.Value)
}

// orEmpty returns bytes that are not null.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// write puts writes in chunks.
func (p *prepared) write(writes []store.Write, sizes map[store.Digest]int64, absent map[store.Key]bool) {
	c := &columns{keys: newKeys(1)}
	flush := func() {
		if len(c.value) > 0 {
			p.writes = append(p.writes, c.statement())
			c = &columns{keys: newKeys(1)}
		}
	}
	for _, w := range writes {
		id := spaceID(w.Space)
		p.spaces[string(id)] = w.Space
		if w.Delete {
			head, tail := cut(w.Name)
			p.writes = append(p.writes, statement{deleteSQL, []any{id, head, mark(tail)}})
			continue
		}
		if len(c.value) == chunkRows || c.size+len(w.Value) > chunkBytes {
			flush()
		}
		named := int64(0)
		for d := range blobsOf(w) {
			named += sizes[d]
		}
		c.add(w, named, absent[w.Key])
		change := p.change[string(id)]
		p.change[string(id)] = delta{change.keys + 1, change.bytes + int64(len(w.Name)+len(w.Value)) + named}
	}
	flush()
}

// blobsOf returns the blobs that a write names, each once.
func blobsOf(w store.Write) iter.Seq[store.Digest] {
	return func(yield func(store.Digest) bool) {
		seen := make(map[store.Digest]struct{}, len(w.Blobs))
		for _, d := range w.Blobs {
			if _, twice := seen[d]; twice {
				continue
			}
			seen[d] = struct{}{}
			if !yield(d) {
				return
			}
		}
	}
}

// name notes which blobs the values name.
func (p *prepared) name(writes []store.Write) {
	k := newKeys(0)
	var digests [][]byte
	flush := func() {
		if len(digests) > 0 {
			p.refs = append(p.refs, statement{refSQL, []any{k.space, k.head, k.marks, digests}})
		}
		k, digests = newKeys(0), nil
	}
	for _, w := range writes {
		if w.Delete {
			continue
		}
		for d := range blobsOf(w) {
			k.add(w.Key)
			digests = append(digests, d[:])
			if len(digests) == chunkRows {
				flush()
			}
		}
	}
	flush()
}

// queue puts the commit into a batch. The answers go to v and change.
func (p *prepared) queue(s *Store, b *pgx.Batch, v *int64, change map[string]delta) {
	b.Queue(s.sql(commitSQL), p.guards...).QueryRow(func(r pgx.Row) error { return r.Scan(v) })
	for _, w := range p.writes {
		b.Queue(s.sql(w.sql), w.args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id []byte
				var old delta
				if err := rows.Scan(&id, &old.keys, &old.bytes); err != nil {
					return err
				}
				d := change[string(id)]
				change[string(id)] = delta{d.keys - old.keys, d.bytes - old.bytes}
			}
			return rows.Err()
		})
	}
	for _, r := range p.refs {
		b.Queue(s.sql(r.sql), r.args...)
	}
}
