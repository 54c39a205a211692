package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

var space = store.Space{Principal: "alice", Package: "notes", Area: "kv"}

func key(name string) store.Key { return store.Key{Space: space, Name: name} }

func put(name, value string) store.Write { return store.Write{Key: key(name), Value: []byte(value)} }

func now(t testing.TB, s *Store) store.Snapshot {
	t.Helper()
	sn, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sn
}

// get returns what a snapshot has at a name.
func get(t testing.TB, sn store.Snapshot, name string) store.Entry {
	t.Helper()
	es, err := sn.Get(t.Context(), key(name))
	if err != nil {
		t.Fatal(err)
	}
	return es[0]
}

func write(t testing.TB, s *Store, id string, writes ...store.Write) store.Version {
	t.Helper()
	v, err := s.Commit(t.Context(), &store.Commit{ID: id, Time: time.Now(), Writes: writes})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outsider is a connection of somebody else, until the test ends.
func outsider(t testing.TB, s *Store) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the answer is yes, for a good while.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if yes() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// blocked waits until somebody waits for a lock.
func blocked(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	eventually(t, "somebody waits", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) from pg_locks where not granted").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// records returns the whole journal, once there are as many as there should be.
func records(t testing.TB, s *Store, want int) []store.Logged {
	t.Helper()
	var all []store.Logged
	eventually(t, fmt.Sprintf("%d records", want), func() bool {
		var after store.Cursor
		if len(all) > 0 {
			after = all[len(all)-1].Cursor
		}
		page, err := s.Records(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		return len(all) >= want && len(page) == 0
	})
	if len(all) != want {
		t.Errorf("%d records, want %d", len(all), want)
	}
	return all
}

// whole checks all chains against their heads.
func whole(t testing.TB, s *Store, logged []store.Logged) {
	t.Helper()
	heads, err := s.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		n    uint64
		hash store.Digest
	}
	at, want := map[string]end{}, map[string]end{}
	for _, h := range heads {
		at[h.Writer], want[h.Writer] = end{h.First - 1, h.Prev}, end{h.N, h.Hash}
	}
	for _, l := range logged {
		a := at[l.Writer]
		if l.N != a.n+1 || l.Prev != a.hash || l.Hash != store.ChainHash(a.hash, l.Writer, l.N, l.Record) {
			t.Fatalf("record %d of %s does not follow %d", l.N, l.Writer, a.n)
		}
		at[l.Writer] = end{l.N, l.Hash}
	}
	for writer, w := range want {
		if at[writer] != w {
			t.Errorf("chain %s ends at %v, and should at %v", writer, at[writer], w)
		}
	}
}

// countUntil adds one to a counter and writes a record, once for an ID, however
// often that has to be tried. It stops at an error that is none of those that a
// caller has to expect.
func countUntil(ctx context.Context, s *Store, id, name string, tolerated func(error) bool) error {
	for {
		err := countOnce(ctx, s, id, name)
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnknown):
		case err != nil && tolerated(err):
			time.Sleep(10 * time.Millisecond)
		default:
			return err
		}
	}
}

func countOnce(ctx context.Context, s *Store, id, name string) error {
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	es, err := sn.Get(ctx, key(name))
	if err != nil {
		return err
	}
	n := uint64(0)
	if es[0].Version != 0 {
		n = binary.BigEndian.Uint64(es[0].Value)
	}
	_, err = s.Commit(ctx, &store.Commit{
		ID: id, Time: time.Now(), Guards: []store.Guard{{Key: key(name), Version: es[0].Version}},
		Writes: []store.Write{
			{Key: key(name), Value: binary.BigEndian.AppendUint64(nil, n+1)}, put("done "+id, id), put("also "+id, id),
		},
		Records: []store.Record{{Time: time.Now(), Data: []byte(id)}},
	})
	return err
}

// exactlyOnce demands that each ID was counted, written and recorded once.
func exactlyOnce(t testing.TB, s *Store, ids map[string]bool) {
	t.Helper()
	sn := now(t, s)
	sum, keys := uint64(0), 0
	for r := (store.Range{Space: space}); ; {
		page, err := sn.Scan(t.Context(), r, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if len(e.Value) == 8 && e.Name[:3] == "hot" {
				sum += binary.BigEndian.Uint64(e.Value)
				continue
			}
			if keys++; !ids[string(e.Value)] {
				t.Errorf("%q was written by somebody unknown", e.Name)
			}
		}
		if len(page) < 100 {
			break
		}
		r.From = page[len(page)-1].Name + "\x00"
	}
	if sum != uint64(len(ids)) || keys != 2*len(ids) {
		t.Errorf("%d commits: counted %d, %d keys", len(ids), sum, keys)
	}
	logged, seen := records(t, s, len(ids)), map[string]bool{}
	for _, l := range logged {
		if seen[string(l.Data)] || !ids[string(l.Data)] {
			t.Errorf("record of %s twice or of nobody", l.Data)
		}
		seen[string(l.Data)] = true
	}
	whole(t, s, logged)
}
