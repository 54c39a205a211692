package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// intruder is another process that writes: it holds the turn until it is let go.
func intruder(t *testing.T, s *Store) (release func()) {
	t.Helper()
	c, err := sqlite3.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := errors.Join(c.Exec("ROLLBACK"), c.Close()); err != nil {
			t.Error(err)
		}
	})
}

// queued waits until so many requests are in the queue.
func queued(t *testing.T, q *queue, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		q.mu.Lock()
		have := len(q.list)
		q.mu.Unlock()
		if have == n {
			return
		}
	}
	t.Fatalf("the queue has not come to %d requests", n)
}

// TestWaitForOthers: a commit waits for other processes as long as it is wanted,
// reads do not wait, and one that is cancelled meanwhile is not done.
func TestWaitForOthers(t *testing.T) {
	s := opened(t, t.TempDir())
	release := intruder(t, s)
	defer release()
	var o outcomes
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody wants it any more")
	for i := range 4 {
		wg.Go(func() {
			ctx := ctx
			if i%2 == 0 {
				ctx = t.Context()
			}
			id := fmt.Sprint(i)
			_, err := s.Commit(ctx, mark(id))
			if err != nil && !errors.Is(err, why) {
				t.Error(err)
			}
			o.add(id, err)
		})
	}
	queued(t, s.queue, 4)
	if _, err := s.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
	cancel(why)
	queued(t, s.queue, 2)
	release()
	wg.Wait()
	if len(o.done) != 2 || len(o.failed) != 2 {
		t.Errorf("done %v, failed %v", o.done, o.failed)
	}
	o.hold(t, s)
}

func TestCloseWhileWaiting(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	release := intruder(t, s)
	defer release()
	done := make(chan error)
	go func() {
		_, err := s.Commit(t.Context(), mark("waits"))
		done <- err
	}()
	queued(t, s.queue, 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("%v, want it closed", err)
	}
	release()
	(&outcomes{failed: []string{"waits"}}).hold(t, opened(t, folder))
}

// TestGroup: requests that wait together are written together, each with its own
// outcome.
func TestGroup(t *testing.T) {
	s := opened(t, t.TempDir())
	release := intruder(t, s)
	defer release()
	shared := store.Key{Space: faultSpace, Name: "shared"}
	var o outcomes
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			c := mark(fmt.Sprint(i))
			c.Guards = []store.Guard{{Key: shared}} // one of them comes first
			_, err := s.Commit(t.Context(), c)
			if err != nil && !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
			o.add(c.ID, err)
		})
	}
	wg.Go(func() {
		if _, err := s.Commit(t.Context(), &store.Commit{ID: "sized", Writes: []store.Write{{Key: store.Key{Space: faultSpace, Name: "b"}, Blobs: []store.Digest{{}}}}}); !errors.Is(err, store.ErrGone) {
			t.Error(err)
		}
	})
	queued(t, s.queue, 11)
	release()
	wg.Wait()
	if len(o.done) != 1 || len(o.failed) != 9 {
		t.Errorf("done %v, failed %v", o.done, o.failed)
	}
	o.hold(t, s)
}

// TestSpoiled: what spoils the transaction of a group does not spoil the others.
func TestSpoiled(t *testing.T) {
	s := opened(t, t.TempDir())
	release := intruder(t, s)
	defer release()
	broken := errors.New("broken")
	var o outcomes
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			id := fmt.Sprint(i)
			err := s.queue.do(t.Context(), func(g *group) error {
				_, err := g.commit(mark(id))
				if err == nil && i == 3 {
					return broken // after it wrote
				}
				return err
			})
			if err != nil && !errors.Is(err, broken) {
				t.Error(err)
			}
			o.add(id, err)
		})
	}
	queued(t, s.queue, 6)
	release()
	wg.Wait()
	if len(o.done) != 5 || len(o.failed) != 1 {
		t.Errorf("done %v, failed %v", o.done, o.failed)
	}
	o.hold(t, s)
}

// TestLateReader: a snapshot that is read with an ended context says why, and the
// connection it used goes on working.
func TestLateReader(t *testing.T) {
	s, err := Open(t.Context(), Options{Folder: t.TempDir(), Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	err = s.read(ctx, func(c *conn) error {
		rows := 0
		return c.rows("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", func(*sqlite3.Stmt) bool {
			if rows++; rows == 1000 {
				cancel(why)
			}
			return true
		})
	})
	if !errors.Is(err, why) {
		t.Errorf("%v, want the reason", err)
	}
	if _, err := s.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPlans: no statement that runs often looks at more rows than it needs.
func TestPlans(t *testing.T) {
	s := opened(t, t.TempDir())
	n := &snapshot{s: s, version: 1}
	r := store.Range{Space: faultSpace, From: "a", To: "b"}
	both, _ := n.both(1, r, 10)
	open, _ := n.both(1, store.Range{Space: faultSpace}, 10)
	guard, _ := bounds(r, "SELECT name, born, class, expires FROM live WHERE space = ?")
	for _, sql := range []string{
		sqlSpace, sqlLive, sqlDead, both, open, guard + " ORDER BY name",
		"SELECT version FROM commits WHERE id = ?",
		"SELECT value, parts FROM contents WHERE id = ?",
		"SELECT value FROM parts WHERE content = ? ORDER BY part",
		"SELECT space, name, born, class, expires, size, content FROM live WHERE expires <= ? LIMIT ?",
		"SELECT died, content, name FROM dead WHERE space = ? AND died <= ? LIMIT ?",
		"SELECT 1 FROM refs r WHERE r.digest = ?",
		"DELETE FROM contents WHERE id = ?", "DELETE FROM blobs WHERE digest = ?",
	} {
		err := s.read(t.Context(), func(c *conn) error {
			return c.rows("EXPLAIN QUERY PLAN "+sql, func(r *sqlite3.Stmt) bool {
				if plan := r.ColumnText(3); strings.HasPrefix(plan, "SCAN") {
					t.Errorf("%s: %s", sql, plan)
				}
				return true
			})
		})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestFileBounded: what is pruned makes room for what comes.
func TestFileBounded(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	size := func() (pages int64) {
		t.Helper()
		if err := s.read(t.Context(), func(c *conn) error {
			return c.row("PRAGMA page_count", func(r *sqlite3.Stmt) { pages = r.ColumnInt64(0) })
		}); err != nil {
			t.Fatal(err)
		}
		return pages
	}
	value := make([]byte, 4000)
	var first int64
	for round := range 6 {
		for i := range 100 {
			c := &store.Commit{ID: fmt.Sprint(round, " ", i), Records: []store.Record{{Data: value}}}
			c.Writes = []store.Write{{Key: store.Key{Space: faultSpace, Name: "k"}, Value: value}}
			if _, err := s.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(100 * time.Hour), RecordBytes: 10_000}); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			first = size()
		}
	}
	if last := size(); last > first*5/4 {
		t.Errorf("%s has %d pages, and had %d", filepath.Join(folder, fileName), last, first)
	}
}
