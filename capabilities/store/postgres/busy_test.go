package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// overtaken lets somebody change the row of a key after the commit has begun and
// before it comes to the row: the server refuses the commit.
func overtaken(t *testing.T, s *Store, c *store.Commit, change string) error {
	t.Helper()
	conn, watcher := outsider(t, s), outsider(t, s)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), s.sql(change)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Commit(t.Context(), c)
		done <- err
	}()
	blocked(t, watcher)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

func TestRefusedByServer(t *testing.T) {
	server := start(t)
	const touched, changed = "update @.live set class = 7", "update @.live set born = born + 1"
	for _, c := range []struct {
		what, change string
		tries        int
		guarded      bool
		want         func(error) bool
	}{
		{"once", touched, 2, true, func(err error) bool { return err == nil }},
		{"guards hold", touched, 1, true, busy},
		{"no guards", changed, 1, false, busy},
		{"guards do not hold", changed, 1, true, func(err error) bool { return errors.Is(err, store.ErrConflict) }},
		{"found at the second try", changed, 2, true, func(err error) bool { return errors.Is(err, store.ErrConflict) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := open(t, Options{URL: fresh(server.URL()), Tries: c.tries})
			v := write(t, s, "first", put("k", "1"))
			commit := &store.Commit{ID: "second", Writes: []store.Write{put("k", "2")}}
			if c.guarded {
				commit.Guards = []store.Guard{{Key: key("k"), Version: v}}
			}
			if err := overtaken(t, s, commit, c.change); !c.want(err) {
				t.Errorf("%v", err)
			}
			_, err := s.Commit(t.Context(), &store.Commit{ID: "after"})
			if err != nil {
				t.Errorf("after it: %v", err)
			}
		})
	}
}

// TestStorm: calls that all read all of a range and write into it.
func TestStorm(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	const callers, each = 12, 8
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for i := range each {
				for {
					es := scan(t, s, "s", "t")
					_, err := s.Commit(t.Context(), &store.Commit{
						ID:     fmt.Sprintf("%d-%d", g, i),
						Ranges: []store.RangeGuard{{Range: store.Range{Space: space, From: "s", To: "t"}, Digest: store.DigestOf(es, false)}},
						Writes: []store.Write{put(fmt.Sprintf("s %04d", len(es)), "v")},
					})
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) && !busy(err) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if es := scan(t, s, "s", "t"); len(es) != callers*each || es[len(es)-1].Name != fmt.Sprintf("s %04d", callers*each-1) {
		t.Errorf("%d keys, want %d", len(es), callers*each)
	}
}

// TestNeighbours: new keys beside each other are in nobody's way, even where
// each has to be absent.
func TestNeighbours(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), Tries: 1})
	begin := func(name string) (pgx.Tx, func() error) {
		c := &store.Commit{ID: name, Guards: []store.Guard{{Key: key(name)}}, Writes: []store.Write{put(name, "v")}}
		conn := outsider(t, s)
		tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
		if err != nil {
			t.Fatal(err)
		}
		p := prepare(c, nil)
		exec(t, conn, planSQL)
		exec(t, conn, s.sql(commitSQL), p.guards...)
		return tx, func() error {
			_, err := conn.Exec(t.Context(), s.sql(p.writes[0].sql), p.writes[0].args...)
			return err
		}
	}
	a, writeA := begin("a")
	b, writeB := begin("b")
	if err := errors.Join(writeA(), writeB(), a.Commit(t.Context()), b.Commit(t.Context())); err != nil {
		t.Errorf("two new keys: %v", err)
	}
}

// TestTimeout: a server that does not come to an end leaves nothing half done.
func TestTimeout(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), Timeout: 300 * time.Millisecond, Settle: 400 * time.Millisecond})
	write(t, s, "first", put("k", "1"))
	conn := outsider(t, s)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), s.sql("select from @.live for update")); err != nil {
		t.Fatal(err)
	}
	c := &store.Commit{ID: "second", Writes: []store.Write{put("k", "2")}}
	if _, err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("%v, want the outcome unknown", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if e := get(t, now(t, s), "k"); e.Version != v || string(e.Value) != "2" {
		t.Errorf("%q in version %d, want 2 in %d", e.Value, e.Version, v)
	}
}

// TestWaiting: a call that waits for a connection goes when its context does.
func TestWaiting(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), MaxConns: 1})
	sl, err := s.pool.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Commit(ctx, &store.Commit{ID: "waits"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it cancelled", err)
	}
	s.pool.release(sl)
	write(t, s, "goes", put("k", "1"))
}
