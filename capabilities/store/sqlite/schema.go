package sqlite

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// applicationID marks the files of this package, as SQLite's header has a place
// for it: "sbxd".
const applicationID = 0x73627864

// migrations lead from one schema to the next: the schema's version is how many
// of them were done. Those that were released are never changed.
//
// A value is written once and never moved: live and dead rows name its content.
// What is replaced goes from live to dead, so that what a snapshot has to look
// through beside the live keys is only what was replaced since.
var migrations = []string{`
CREATE TABLE state (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	version INTEGER NOT NULL, -- of the last commit
	horizon INTEGER NOT NULL, -- snapshots before this version can no longer be read
	record INTEGER NOT NULL,  -- the last record of the journal
	journal INTEGER NOT NULL, -- bytes of the journal
	settled INTEGER NOT NULL  -- commits that failed and were written over
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, 0, 0);

CREATE TABLE spaces (
	id INTEGER PRIMARY KEY,
	principal TEXT NOT NULL,
	package TEXT NOT NULL,
	area TEXT NOT NULL,
	keys INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	UNIQUE (principal, package, area)
) STRICT;

CREATE TABLE contents (
	id INTEGER PRIMARY KEY,
	parts INTEGER NOT NULL, -- further ones
	value BLOB NOT NULL
) STRICT;

CREATE TABLE parts (
	content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
	part INTEGER NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (content, part)
) STRICT;

CREATE TABLE live (
	space INTEGER NOT NULL REFERENCES spaces,
	name BLOB NOT NULL,
	born INTEGER NOT NULL,
	class INTEGER NOT NULL,
	expires INTEGER, -- nanoseconds since 1970
	size INTEGER NOT NULL,
	content INTEGER NOT NULL,
	PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX live_expires ON live (expires) WHERE expires IS NOT NULL;

CREATE TABLE dead (
	space INTEGER NOT NULL REFERENCES spaces,
	died INTEGER NOT NULL,
	name BLOB NOT NULL,
	born INTEGER NOT NULL,
	class INTEGER NOT NULL,
	expires INTEGER,
	content INTEGER NOT NULL,
	PRIMARY KEY (space, died, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE commits (
	version INTEGER PRIMARY KEY,
	id TEXT UNIQUE, -- none for what the store did by itself
	at INTEGER NOT NULL
) STRICT;

CREATE TABLE blobs (
	digest BLOB PRIMARY KEY,
	size INTEGER NOT NULL,
	at INTEGER NOT NULL -- when somebody put it
) STRICT, WITHOUT ROWID;

CREATE TABLE refs (
	content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
	digest BLOB NOT NULL REFERENCES blobs,
	PRIMARY KEY (content, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX refs_digest ON refs (digest);

CREATE TABLE writers (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	first INTEGER NOT NULL, -- the oldest record that is kept
	prev BLOB NOT NULL,     -- what it follows
	n INTEGER NOT NULL,
	hash BLOB NOT NULL
) STRICT;

CREATE TABLE records (
	seq INTEGER PRIMARY KEY,
	writer INTEGER NOT NULL,
	n INTEGER NOT NULL,
	prev BLOB NOT NULL,
	hash BLOB NOT NULL,
	time INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;
`}

// initialise makes the file one of the newest schema. It returns [ErrForeign]
// for a file that is none of this package, and a [SchemaError] for one of a newer
// program, and leaves them as they are.
func (s *Store) initialise(c *conn) error {
	if err := s.recognise(c); err != nil {
		return err
	}
	mode := ""
	if err := c.row("PRAGMA journal_mode = WAL", func(r *sqlite3.Stmt) { mode = r.ColumnText(0) }); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("store %s: a write-ahead log is not possible there (journal mode %q): choose a folder on a local disk", s.path, mode)
	}
	if err := s.migrate(c); err != nil {
		return err
	}
	return c.BusyTimeout(0) // the queue waits by itself
}

// migrate brings the file to the newest schema.
func (s *Store) migrate(c *conn) (err error) {
	if err := c.begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.rollback()
		}
	}()
	have, err := s.schema(c)
	if err != nil {
		return err
	}
	if have < 0 {
		have = 0
		err := c.Exec(fmt.Sprintf(`PRAGMA application_id = %d;
CREATE TABLE schema (version INTEGER NOT NULL) STRICT;
INSERT INTO schema VALUES (0);`, applicationID))
		if err != nil {
			return err
		}
	}
	for n, m := range migrations[have:] {
		if err := c.Exec(m); err != nil {
			return fmt.Errorf("schema %d: %w", have+n+1, err)
		}
	}
	if have < len(migrations) {
		if err := c.exec("UPDATE schema SET version = ?", len(migrations)); err != nil {
			return err
		}
	}
	return c.exec("COMMIT")
}

// recognise refuses a file that is not for this package, and changes nothing.
func (s *Store) recognise(c *conn) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	defer c.rollback()
	_, err := s.schema(c)
	return err
}

// schema returns the version of the file's schema, or -1 for a new file.
func (s *Store) schema(c *conn) (version int, err error) {
	var id, tables int
	if err := c.row("PRAGMA application_id", func(r *sqlite3.Stmt) { id = r.ColumnInt(0) }); err != nil {
		return 0, err
	}
	if err := c.row("SELECT count(*) FROM sqlite_schema", func(r *sqlite3.Stmt) { tables = r.ColumnInt(0) }); err != nil {
		return 0, err
	}
	switch {
	case id == 0 && tables == 0:
		return -1, nil
	case id != applicationID || tables == 0:
		return 0, fmt.Errorf("%s: %w", s.path, ErrForeign)
	}
	if err := c.row("SELECT version FROM schema", func(r *sqlite3.Stmt) { version = r.ColumnInt(0) }); err != nil {
		return 0, err
	}
	if version > len(migrations) {
		return 0, &SchemaError{Path: s.path, Have: version, Know: len(migrations)}
	}
	return version, nil
}
