// Package postgres is a store of many machines, in a PostgreSQL that they share.
//
// A commit is one SERIALIZABLE transaction and one round trip (two where it
// guards ranges). No transaction is held between reads: what was replaced is
// kept, with the transaction that replaced it, and a snapshot is a list of the
// transactions that it sees.
//
// The schema has tables, indexes and one view for people; no functions,
// triggers, sequences, advisory locks, LISTEN or deferrable constraints.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Defaults of [Options].
const (
	DefaultMaxConns = 16
	DefaultTries    = 10
	DefaultTimeout  = 30 * time.Second
	DefaultSettle   = 10 * time.Second
	DefaultSchema   = "sandboxd"
)

// Options of a [Store].
type Options struct {
	// URL is that of the database, as libpq takes it: postgres://user@host/db. Its
	// search_path names the schema; default [DefaultSchema]. Behind a pgbouncer
	// that has no prepared statements, it has to say
	// default_query_exec_mode=exec.
	URL string
	// MaxConns is how many connections there are at most, each with a chain of
	// records of its own; default [DefaultMaxConns].
	MaxConns int
	// Tries is how often a commit is tried that the server refuses for what others
	// do at the same time; default [DefaultTries].
	Tries int
	// Timeout is how long the server may take to answer; default [DefaultTimeout].
	Timeout time.Duration
	// Settle is how long a lost server is looked for, to do again what can be done
	// again and to learn what a commit came to; default [DefaultSettle].
	Settle time.Duration
}

// Store is a store in PostgreSQL. It is a [store.Store].
type Store struct {
	opts   Options
	config *pgx.ConnConfig
	schema string // quoted
	pool   *pool
	usage  usage

	mu        sync.Mutex
	unsettled map[string]string // writers of commits whose outcome is unknown, by ID
}

var _ store.Store = (*Store)(nil)

// Open connects to a database, makes or moves up the schema, and returns the
// store. What hinders it is an [*OpenError].
func Open(ctx context.Context, o Options) (*Store, error) {
	o.MaxConns = orDefault(o.MaxConns, DefaultMaxConns)
	o.Tries = orDefault(o.Tries, DefaultTries)
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.Settle = orDefault(o.Settle, DefaultSettle)
	config, schema, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, config: config, schema: pgx.Identifier{schema}.Sanitize(), unsettled: map[string]string{}}
	s.pool = newPool(writerID(), o.MaxConns)
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	err = s.migrate(ctx, conn, schema)
	if err == nil {
		err = s.greet(ctx, conn)
	}
	if err != nil {
		_ = conn.Close(canceled()) // it says that it did not say farewell
		return nil, s.openError(err)
	}
	s.pool.give(conn)
	return s, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// parse returns how to connect, and the schema.
func parse(url string) (*pgx.ConnConfig, string, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, "", &OpenError{Problem: "not a URL of PostgreSQL (postgres://user@host:5432/database)" + reason(err)}
	}
	schema := config.RuntimeParams["search_path"]
	// Statements name the schema: one that the session is told of would be lost
	// where sessions are shared.
	delete(config.RuntimeParams, "search_path")
	switch {
	case schema == "":
		schema = DefaultSchema
	case strings.ContainsAny(schema, `,"$`) || strings.HasPrefix(schema, "pg_"):
		return nil, "", &OpenError{Server: server(config), Problem: fmt.Sprintf("search_path %q has to be the name of one schema", schema)}
	}
	if config.ValidateConnect == nil { // the URL asks for no target_session_attrs
		config.ValidateConnect = writable
	}
	if _, ok := config.RuntimeParams["application_name"]; !ok {
		config.RuntimeParams["application_name"] = "sandboxd"
	}
	return config, schema, nil
}

// errStandby is a server that one can only read from, and not even what was
// committed just now.
var errStandby = errors.New("server is read-only")

func writable(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "show transaction_read_only").ReadAll()
	if err != nil {
		return err
	}
	if len(results) == 1 && len(results[0].Rows) == 1 && string(results[0].Rows[0][0]) == "off" {
		return nil
	}
	return errStandby
}

// writerID returns the name that the chains of an open store begin with.
func writerID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Close waits for what is being done and closes the connections.
func (s *Store) Close() error { return s.pool.close() }

// sql puts the schema into a statement.
func (s *Store) sql(text string) string { return strings.ReplaceAll(text, "@.", s.schema+".") }

// read runs f on a connection, again where the server was lost on the way.
func (s *Store) read(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error {
	sl, err := s.pool.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.pool.release(sl)
	patience := s.patience()
	for {
		err := s.connect(ctx, sl)
		if err == nil {
			err = s.bounded(ctx, sl, f)
		}
		switch kind := kindOf(err); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case kind != lost && kind != again:
			return err
		}
		if !patience.wait(ctx) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// bounded runs f in the time that the server has to answer.
func (s *Store) bounded(ctx context.Context, sl *slot, f func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err := f(ctx, sl.conn)
	if err != nil && sl.conn.PgConn().TxStatus() != 'I' {
		sl.drop() // whatever it was in, the server leaves it
	}
	return err
}

// connect gives a slot its connection.
func (s *Store) connect(ctx context.Context, sl *slot) error {
	if sl.conn != nil && !sl.conn.IsClosed() {
		return nil
	}
	sl.drop()
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	if err := s.greet(ctx, conn); err != nil {
		_ = conn.Close(canceled())
		return err
	}
	sl.take(conn)
	return nil
}

func (s *Store) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return nil, s.openError(err)
	}
	return conn, nil
}

// canceled returns a context for closing without a farewell.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// unsettle notes that nobody knows what a commit of a writer came to.
func (s *Store) unsettle(id, writer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsettled[id] = writer
}

// settled notes that the server is done with what a writer did before.
func (s *Store) settled(writer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.unsettled, func(_, w string) bool { return w == writer })
}

// unsettledWriter returns who may still be committing an ID.
func (s *Store) unsettledWriter(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.unsettled[id]
	return w, ok
}
