package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// migrations make the schema, one format after the other. What was released is
// never changed.
var migrations = []string{`
-- A version is base + the transaction that wrote it.
alter table @.meta add column base bigint not null default 0;

-- The key of a value is the hash of its space and the name: its first 2048 bytes
-- (head) and the hash of the others (mark), since an index takes no more.
create table @.live (
	space bytea not null, head bytea not null, mark bytea not null, tail bytea not null,
	principal bytea not null, package bytea not null, area bytea not null,
	born bigint not null, class smallint not null, expires bigint not null,
	named bigint not null, -- bytes of the blobs that the value names
	value bytea not null,
	primary key (space, head, mark)
) with (fillfactor = 80);
create index live_expires on @.live (expires) where expires <> 0;

create table @.replaced (
	space bytea not null, head bytea not null, mark bytea not null, tail bytea not null,
	born bigint not null, died bigint not null, at timestamptz not null,
	class smallint not null, expires bigint not null, named bigint not null, value bytea not null,
	primary key (space, head, mark, died)
);
create index replaced_died on @.replaced (space, died);
-- What is no longer kept: the last of what died and of what expired, and the
-- version in which this was removed.
create table @.pruned (
	one boolean primary key default true check (one), died bigint not null, expired bigint not null, ended bigint not null
);
insert into @.pruned (died, expired, ended) values (0, 0, 0);

create table @.commits (id bytea primary key, version bigint not null, at timestamptz not null);
create index commits_version on @.commits (version);

create table @.heads (
	writer text collate "C" primary key, n bigint not null, hash bytea not null, epoch bigint not null, at timestamptz not null
) with (fillfactor = 50);
create table @.trims (writer text collate "C" primary key, first bigint not null, prev bytea not null);
create table @.records (
	version bigint not null, writer text collate "C" not null, n bigint not null,
	prev bytea not null, hash bytea not null, time bigint not null, data bytea not null,
	primary key (version, writer, n), unique (writer, n)
);

create table @.blobs (digest bytea primary key, data bytea not null, touched timestamptz not null);
create table @.refs (
	space bytea not null, head bytea not null, mark bytea not null, born bigint not null,
	digest bytea not null references @.blobs (digest),
	primary key (space, head, mark, born, digest)
);
create index refs_digest on @.refs (digest);

-- For people.
create view @.entries as select
	encode(principal, 'escape') as principal, encode(package, 'escape') as package, encode(area, 'escape') as area,
	encode(head || tail, 'escape') as name, born as version, class,
	case when expires <> 0 then to_timestamp(expires / 1e6) end as expires, octet_length(value) as bytes, value
	from @.live;
`}

// migrate makes the schema or moves it up. Several may do it at once.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn, schema string) error {
	var err error
	for try := range 50 {
		if err = s.migrateOnce(ctx, conn, schema); !concurrently(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Duration(try+1) * 5 * time.Millisecond)):
		}
	}
	return err
}

// concurrently reports whether somebody else made the same thing at the same
// time: what is made only if it is not there is then an error all the same.
func concurrently(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pe.Code {
	case unique, serialization, deadlock, "42P06", "42P07", "42701", "42710", "XX000":
		return true
	}
	return false
}

func (s *Store) migrateOnce(ctx context.Context, conn *pgx.Conn, schema string) error {
	have, err := s.format(ctx, conn)
	switch {
	case err != nil:
		return err
	case have > len(migrations):
		return &NewerError{Have: have, Want: len(migrations)}
	case have == len(migrations):
		return nil
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, "select exists (select from pg_catalog.pg_namespace where nspname = $1)", schema).Scan(&there); err != nil {
			return err
		}
		steps := s.sql(`create table if not exists @.meta (one boolean primary key default true check (one), format integer not null);
			insert into @.meta (format) values (0) on conflict do nothing;`)
		if !there { // who may not make it is not asked to
			steps = fmt.Sprintf("create schema if not exists %s;", s.schema) + steps
		}
		if _, err := tx.Exec(ctx, steps, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		// The row is a lock: whoever comes second finds the format of the first.
		if err := tx.QueryRow(ctx, s.sql("select format from @.meta for update")).Scan(&have); err != nil {
			return err
		}
		for ; have < len(migrations); have++ {
			if _, err := tx.Exec(ctx, s.sql(migrations[have]), pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("migration to format %d: %w", have+1, err)
			}
			if _, err := tx.Exec(ctx, s.sql("update @.meta set format = $1"), have+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// format returns the format of the schema, 0 if there is none.
func (s *Store) format(ctx context.Context, conn *pgx.Conn) (int, error) {
	var have int
	err := conn.QueryRow(ctx, s.sql("select format from @.meta")).Scan(&have)
	pe, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (pe.Code == noTable || pe.Code == noSchema), errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	}
	return have, err
}

const greetSQL = `select base, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, greatest(
	(select version from @.commits order by version desc limit 1),
	(select version from @.records order by version desc limit 1), 0)
	from @.meta`

// greet looks at a database that one was just connected to. One that was
// restored from the dump of another server has versions that are still to come
// here: they would be used twice, and be in no snapshot. Then base is moved up.
func (s *Store) greet(ctx context.Context, conn *pgx.Conn) error {
	for try := 1; ; try++ {
		err := s.greetOnce(ctx, conn)
		if kindOf(err) != again || try == s.opts.Tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Duration(try) * 10 * time.Millisecond)):
		}
	}
}

func (s *Store) greetOnce(ctx context.Context, conn *pgx.Conn) error {
	var base, next, last int64
	if err := conn.QueryRow(ctx, s.sql(greetSQL)).Scan(&base, &next, &last); err != nil {
		return err
	}
	if last < base+next {
		return nil
	}
	// Serialisable: a commit that reads the old base is not done beside it, as its
	// row is one of those that are counted.
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.sql(greetSQL)).Scan(&base, &next, &last); err != nil {
			return err
		}
		if last < base+next {
			return nil
		}
		var commits int64
		if err := tx.QueryRow(ctx, s.sql("select count(*) from @.commits")).Scan(&commits); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.sql("update @.meta set base = $1"), last)
		return err
	})
}
