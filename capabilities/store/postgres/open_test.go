package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

const secret = "never-tell"

// refusedOpen demands one line that names the setting and not the password.
func refusedOpen(t *testing.T, what, url string, want ...string) *OpenError {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: url, Timeout: 5 * time.Second})
	if err == nil {
		s.Close()
	}
	e, ok := errors.AsType[*OpenError](err)
	if !ok {
		t.Errorf("%s: %v, want an error of opening", what, err)
		return &OpenError{}
	}
	text := err.Error()
	if !strings.HasPrefix(text, "store: ") || strings.ContainsAny(text, "\n\t") || strings.Contains(text, secret) {
		t.Errorf("%s: %q", what, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q does not say %q", what, text, w)
		}
	}
	return e
}

func TestOpenWithoutServer(t *testing.T) {
	for _, url := range []string{
		"postgres://bob:" + secret + "@host:port/db", "postgres://bob:" + secret + "%zz@host/db", "postgres://bob:" + secret + "@[::1/db",
		"host=x password=" + secret + " port=none", "postgres://bob:" + secret + "@host/db?sslmode=none", secret,
		"postgres://bob:" + secret + "@host/db?connect_timeout=" + secret,
	} {
		refusedOpen(t, url, url, "not a URL of PostgreSQL")
	}
	for _, path := range []string{"a,b", `"a"`, "$user", "pg_catalog"} {
		refusedOpen(t, path, with("postgres://bob:"+secret+"@host/db", "search_path", path), "search_path", "postgres://bob@host:5432/db")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	refusedOpen(t, "nobody listens", "postgres://bob:"+secret+"@"+addr+"/db", "postgres://bob@"+addr+"/db", "no server answers: dial tcp")
	refusedOpen(t, "no socket", "postgres://bob:"+secret+"@/db?host=/nowhere", "host=/nowhere", "no server answers")
}

// TestOpenDeaf: a server that takes the connection and says nothing.
func TestOpenDeaf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, Options{URL: "postgres://bob:" + secret + "@" + l.Addr().String() + "/db"})
	if e, ok := errors.AsType[*OpenError](err); !ok || strings.Contains(e.Error(), secret) || !strings.Contains(e.Error(), "in time") {
		t.Errorf("%v", err)
	}
}

func TestOpenRefused(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("sandboxd", secret)
	e := refusedOpen(t, "wrong password", u.String(), "does not let the user in", "28P01")
	if pe, ok := errors.AsType[*pgconn.PgError](e); !ok || pe.Code != "28P01" {
		t.Errorf("the server's own error is lost: %v", e.Err)
	}
	u.User, u.Path = url.UserPassword("sandboxd", server.Password()), "/nothing"
	refusedOpen(t, "no database", u.String(), "no such database", "3D000")
	// A schema of a later version is left alone.
	execute(t, s, "update @.meta set format = 99")
	e = refusedOpen(t, "newer schema", with(server.URL(), "search_path", strings.Trim(s.schema, `"`)), "format 99", "later version")
	if newer, ok := errors.AsType[*NewerError](e); !ok || newer.Have != 99 {
		t.Errorf("%v", e.Err)
	}
	// A user who may make no schema can use one that was made for it.
	admin := outsider(t, s)
	exec(t, admin, "create role plain login password '"+secret+"'")
	u.User, u.Path = url.UserPassword("plain", secret), "/postgres"
	refusedOpen(t, "no right", with(u.String(), "search_path", "own"), "may not make the schema", "42501")
	exec(t, admin, "create schema own authorization plain")
	plain := open(t, Options{URL: with(u.String(), "search_path", "own")})
	v := write(t, plain, "first", put("k", "1"))
	if e := get(t, now(t, plain), "k"); e.Version != v {
		t.Errorf("version %d, want %d", e.Version, v)
	}
	exec(t, admin, "alter role plain set default_transaction_read_only = on")
	refusedOpen(t, "read-only", with(u.String(), "search_path", "own"), "read-only")
}

// TestOpenTogether: replicas that start at the same time make one schema.
func TestOpenTogether(t *testing.T) {
	server := start(t)
	for range 5 {
		url := fresh(server.URL())
		stores := make([]*Store, 8)
		var wg sync.WaitGroup
		for i := range stores {
			wg.Go(func() {
				s, err := Open(t.Context(), Options{URL: url})
				if err != nil {
					t.Error(err)
					return
				}
				stores[i] = s
			})
		}
		wg.Wait()
		for i, s := range stores {
			if s == nil {
				continue
			}
			write(t, s, fmt.Sprint(i), put(fmt.Sprint(i), "v"))
			if es, err := now(t, s).Scan(t.Context(), store.Range{Space: space}, 99); err != nil || len(es) != i+1 {
				t.Errorf("store %d sees %d keys, %v", i, len(es), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// Without search_path there is a schema of a name of its own.
	s := open(t, Options{URL: server.URL()})
	if s.schema != `"sandboxd"` {
		t.Errorf("schema %s", s.schema)
	}
	execute(t, s, "select from sandboxd.entries")
}

// TestModes runs what a store does in all ways in which statements can be sent:
// poolers know only some of them.
func TestModes(t *testing.T) {
	server := start(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, Options{URL: with(fresh(server.URL()), "default_query_exec_mode", mode)})
			awkward := "k'\\ \x00\xff$1" + strings.Repeat("n", 3000)
			d, err := s.PutBlob(t.Context(), []byte(awkward))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 { // until plans are generic
				v := write(t, s, fmt.Sprint("put ", i), store.Write{Key: key(awkward), Value: []byte(awkward), Class: 200, Blobs: []store.Digest{d, d}}, put("k", ""))
				c := &store.Commit{
					ID: fmt.Sprint("call ", i), Time: time.Now(), Guards: []store.Guard{{Key: key(awkward), Version: v}, {Key: key("none")}},
					Ranges:  []store.RangeGuard{{Range: store.Range{Space: space, From: "k'", To: "l"}, Digest: store.DigestOf(scan(t, s, "k'", "l"), false)}},
					Writes:  []store.Write{{Key: key("k"), Delete: true}, {Key: key("soon"), Expires: time.Now().Add(time.Hour)}},
					Records: []store.Record{{Time: time.Now(), Data: []byte(awkward)}, {Time: time.Now()}},
				}
				if _, err := s.Commit(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				c.ID += " again"
				c.Ranges = nil
				c.Guards[0].Version++
				if _, err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrConflict) {
					t.Fatalf("%v, want a conflict", err)
				}
			}
			if es := scan(t, s, "", ""); len(es) != 2 || string(es[0].Value) != awkward || es[0].Class != 200 || es[1].Name != "soon" {
				t.Errorf("%d entries: %v", len(es), es)
			}
			data, err := s.Blob(t.Context(), d)
			u, err2 := s.Usage(t.Context(), space)
			spaces, err3 := s.Spaces(t.Context())
			err4 := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(48 * time.Hour), Records: time.Hour, RecordBytes: 1})
			if err := errors.Join(err, err2, err3, err4); err != nil || string(data) != awkward || len(spaces) != 1 {
				t.Errorf("%v; %d bytes; %v", err, len(data), spaces)
			}
			if want := (store.Usage{Keys: 2, Bytes: int64(3*len(awkward) + 4)}); u != want {
				t.Errorf("usage %v, want %v", u, want)
			}
			whole(t, s, records(t, s, 0))
		})
	}
}

func scan(t *testing.T, s *Store, from, to string) []store.Entry {
	t.Helper()
	es, err := now(t, s).Scan(t.Context(), store.Range{Space: space, From: from, To: to}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

// TestClosed counts what a store leaves at the server.
func TestClosed(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), MaxConns: 3})
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() { write(t, s, fmt.Sprint(i), put(fmt.Sprint(i), "v")) })
	}
	wg.Wait()
	conn := outsider(t, s)
	count := func() (n int) {
		row := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = 'sandboxd' and pid <> pg_backend_pid()")
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n < 1 || n > 3 {
		t.Errorf("%d connections, at most 3 were allowed", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no connection is left", func() bool { return count() == 0 })
	if _, err := s.Snapshot(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("%v, want it closed", err)
	}
}
