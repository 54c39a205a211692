package postgres

import (
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func log(t *testing.T, s *Store, data ...string) {
	t.Helper()
	for _, d := range data {
		if err := s.Append(t.Context(), store.Record{Time: time.Now(), Data: []byte(d)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHorizon: a transaction that began to write before and has not ended could
// still bring an earlier record.
func TestHorizon(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	log(t, s, "1")
	after := records(t, s, 1)[0].Cursor
	conn := outsider(t, s)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var early int64
	if err := tx.QueryRow(t.Context(), "select pg_current_xact_id()::text::bigint").Scan(&early); err != nil {
		t.Fatal(err)
	}
	log(t, s, "3")
	if page, err := s.Records(t.Context(), after, 9); err != nil || len(page) != 0 {
		t.Fatalf("%v, %v; want nothing yet", page, err)
	}
	_, err = tx.Exec(t.Context(), s.sql("insert into @.records (version, writer, n, prev, hash, time, data) values ($1, 'other', 1, $2, $2, 0, '2')"), early, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := records(t, s, 3)
	if got := string(all[0].Data) + string(all[1].Data) + string(all[2].Data); got != "123" || all[0].Cursor != after {
		t.Errorf("records %s, the first at %q", got, all[0].Cursor)
	}
}

// TestForeignTransaction: what others do for hours is in nobody's way but that
// of readers of the journal.
func TestForeignTransaction(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	conn := outsider(t, s)
	exec(t, conn, "begin")
	exec(t, conn, "select pg_current_xact_id()")
	write(t, s, "1", put("k", "1"))
	old := now(t, s)
	write(t, s, "2", put("k", "2"))
	if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(2 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if e := get(t, now(t, s), "k"); string(e.Value) != "2" {
		t.Errorf("the key is %q", e.Value)
	}
	if _, err := old.Get(t.Context(), key("k")); err == nil {
		t.Error("a snapshot shows what was removed")
	}
}

// TestIdleChain: a chain is not gone on with when its end may be forgotten.
func TestIdleChain(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), MaxConns: 1})
	log(t, s, "1", "2")
	age := func() {
		s.pool.free[0].idle = time.Now().Add(-chainIdle - time.Minute).Round(0)
		execute(t, s, "update @.heads set at = now() - interval '3 days'")
	}
	age()
	prune := func(p store.Prune) {
		t.Helper()
		if err := s.Prune(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	prune(store.Prune{}) // the records are kept, and so is the end
	log(t, s, "3")
	all := records(t, s, 3)
	if all[2].Writer == all[1].Writer || all[2].N != 1 {
		t.Errorf("record %d of %s after %d of %s", all[2].N, all[2].Writer, all[1].N, all[1].Writer)
	}
	whole(t, s, all)
	age()
	prune(store.Prune{Now: time.Now().Add(time.Hour), Records: time.Minute})
	heads, err := s.Heads(t.Context())
	if err != nil || len(heads) != 0 {
		t.Errorf("chains of which nothing is left: %v, %v", heads, err)
	}
	log(t, s, "4", "5")
	whole(t, s, records(t, s, 2))
}

// TestStaleChain: somebody else moved the chain on.
func TestStaleChain(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), MaxConns: 1})
	log(t, s, "1")
	execute(t, s, "update @.heads set epoch = epoch + 1")
	log(t, s, "2")
	s.pool.free[0].head.n-- // as if an answer had been forgotten
	log(t, s, "3")
	whole(t, s, records(t, s, 3))
}

func FuzzCursor(f *testing.F) {
	for _, c := range []string{"", "1:w:2", "-1:w:2", "1:w", "1:w:2:3", "01:w:2", "1:\x00:2", "9223372036854775808:w:1"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, writer, n, err := parseCursor(store.Cursor(text))
		if err == nil && text != "" && cursor(version, writer, n) != store.Cursor(text) {
			t.Errorf("%q is read as %d, %q, %d", text, version, writer, n)
		}
		if err != nil && (version != 0 || writer != "" || n != 0) {
			t.Errorf("%q: %v and a value", text, err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	for _, s := range []string{"", "3:5:", "3:5:3,4", "3:5", "a:5:", "3:5:,", "3:5:4,"} {
		f.Add(s, int64(7))
	}
	f.Fuzz(func(t *testing.T, text string, base int64) {
		from, to, writing, err := parseSnapshot(text, base)
		if (err == nil) != (writing != nil) {
			t.Errorf("%q: %d, %d, %v and %v", text, from, to, writing, err)
		}
	})
}
