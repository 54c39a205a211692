package postgres

import (
	"flag"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/storetest"
	"github.com/sandboxd/sandboxd/internal/pgtest"
)

var bin = flag.String("postgres", "", "folder of the programs initdb and postgres, 14 or later; without it only what needs no server is tested")

// start runs a server for a test.
func start(t testing.TB) *pgtest.Server {
	t.Helper()
	if *bin == "" {
		t.Skip("-postgres names no folder of programs (Debian: /usr/lib/postgresql/15/bin of apt-get install postgresql)")
	}
	return pgtest.Start(t, *bin)
}

var schemas atomic.Int64

// fresh returns the server's URL with a schema that nobody has used.
func fresh(url string) string { return with(url, "search_path", fmt.Sprintf("s%d", schemas.Add(1))) }

// with returns a URL with one more parameter.
func with(text, name, value string) string {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// open opens a store until the test ends.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// execute runs a statement of a test on a connection of its own.
func execute(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), s.sql(sql), args...); err != nil {
		t.Fatal(err)
	}
}

// corruptible can do what the disk does.
type corruptible struct{ *Store }

func (c corruptible) CorruptBlob(t testing.TB, d store.Digest) {
	execute(t, c.Store, `update @.blobs set data = 'other' where digest = $1`, d[:])
}

func TestStore(t *testing.T) {
	server := start(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return corruptible{open(t, Options{URL: fresh(server.URL())})}
	})
}

func TestShared(t *testing.T) {
	server := start(t)
	storetest.RunShared(t, func(t *testing.T) (a, b store.Store) {
		url := fresh(server.URL())
		return open(t, Options{URL: url}), open(t, Options{URL: url})
	})
}
