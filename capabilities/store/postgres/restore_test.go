package postgres

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// history writes what a restore has to bring back, and returns the last version.
func history(t *testing.T, s *Store) store.Version {
	t.Helper()
	d, err := s.PutBlob(t.Context(), []byte("blob"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "one", put("k", "1"), put("deleted", "1"), store.Write{Key: key("blob"), Blobs: []store.Digest{d}})
	write(t, s, "two", store.Write{Key: key("deleted"), Delete: true}, put("k", "2"))
	v, err := s.Commit(t.Context(), &store.Commit{
		ID: "three", Time: time.Now(), Writes: []store.Write{put("k", "3")}, Records: []store.Record{{Time: time.Now(), Data: []byte("{}")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// restored demands that everything is there, and that versions go on.
func restored(t *testing.T, s *Store, last store.Version) {
	t.Helper()
	sn := now(t, s)
	if e := get(t, sn, "k"); e.Version != last || string(e.Value) != "3" {
		t.Errorf("restored: %q in version %d, want 3 in %d", e.Value, e.Version, last)
	}
	if es := scan(t, s, "", ""); len(es) != 2 {
		t.Errorf("restored: %d keys, want 2", len(es))
	}
	whole(t, s, records(t, s, 1))
	if v := write(t, s, "three", put("k", "again")); v != last {
		t.Errorf("a commit that was done before has version %d, and had %d", v, last)
	}
	c := &store.Commit{ID: "four", Guards: []store.Guard{{Key: key("k"), Version: last}}, Writes: []store.Write{put("k", "4")}}
	v, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if v <= last {
		t.Errorf("version %d after %d", v, last)
	}
	if e := get(t, sn, "k"); e.Version != last {
		t.Errorf("a snapshot moved from version %d to %d", last, e.Version)
	}
	if e := get(t, now(t, s), "k"); e.Version != v {
		t.Errorf("version %d, want %d", e.Version, v)
	}
}

// TestRestore takes a dump to another server, which has not come as far.
func TestRestore(t *testing.T) {
	if *bin != "" {
		for _, program := range []string{"pg_dump", "psql"} {
			if _, err := os.Stat(filepath.Join(*bin, program)); err != nil {
				t.Skipf("%v", err)
			}
		}
	}
	server := start(t)
	url := fresh(server.URL())
	s := open(t, Options{URL: url})
	conn := outsider(t, s)
	for range 3000 {
		exec(t, conn, "select pg_current_xact_id()")
	}
	last := history(t, s)
	dump := server.Run(nil, "pg_dump", "--schema", strings.Trim(s.schema, `"`))

	second := start(t)
	second.Run(bytes.NewReader(dump), "psql", "--quiet", "--set", "ON_ERROR_STOP=1")
	// Two replicas find it at the same time.
	url = with(second.URL(), "search_path", strings.Trim(s.schema, `"`))
	stores := make([]*Store, 2)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() { stores[i] = open(t, Options{URL: url}) })
	}
	wg.Wait()
	restored(t, stores[0], last)
	if e := get(t, now(t, stores[1]), "k"); string(e.Value) != "4" {
		t.Errorf("the other replica sees %q", e.Value)
	}
}

// TestRestoreBehind: a running store comes to a server that was restored.
func TestRestoreBehind(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	last := history(t, s)
	const ahead = 1_000_000
	for _, sql := range []string{
		"update @.live set born = born + $1", "update @.replaced set born = born + $1, died = died + $1",
		"update @.commits set version = version + $1", "update @.records set version = version + $1", "update @.refs set born = born + $1",
	} {
		execute(t, s, sql, ahead)
	}
	if e := get(t, now(t, s), "k"); e.Version != 0 {
		t.Fatal("versions to come are seen: the test shows nothing")
	}
	server.Restart() // connections break
	restored(t, s, last+ahead)
}

// TestBaseMoves: base moves beside commits, none of which is then half of the
// old and half of the new.
func TestBaseMoves(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	history(t, s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		conn := outsider(t, s)
		for i := int64(1); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// What a restore leaves: a commit that is ahead of the server.
			_, err := conn.Exec(t.Context(), s.sql(`insert into @.commits (id, version, at)
				select convert_to('ahead ' || $1::bigint, 'UTF8'), version + 1000, now() from @.commits order by version desc limit 1`), i)
			if err == nil {
				err = s.greet(t.Context(), conn)
			}
			if err != nil && kindOf(err) != again {
				t.Error(err)
				return
			}
		}
	})
	seen := store.Version(0)
	for i := range 200 {
		v, err := s.Commit(t.Context(), &store.Commit{ID: "c" + string(rune('a'+i)), Writes: []store.Write{put("moving", "v")}})
		if _, ok := errors.AsType[*BusyError](err); ok {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if v <= seen {
			t.Fatalf("version %d after %d", v, seen)
		}
		seen = v
		if e := get(t, now(t, s), "moving"); e.Version != v {
			t.Fatalf("version %d is seen as %d", v, e.Version)
		}
	}
	close(stop)
	wg.Wait()
	if seen == 0 {
		t.Error("nothing was committed")
	}
}

// TestBaseMovesBesideCommit: a commit that has its version of the old base is
// not done once base has moved.
func TestBaseMovesBesideCommit(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	history(t, s)
	conn := outsider(t, s)
	exec(t, conn, beginSQL)
	exec(t, conn, planSQL)
	p := prepare(&store.Commit{ID: "beside", Writes: []store.Write{put("beside", "v")}}, nil)
	exec(t, conn, s.sql(commitSQL), p.guards...)
	execute(t, s, "insert into @.commits (id, version, at) select 'ahead', version + 1000000, now() from @.commits order by version desc limit 1")
	moves := s.greet(t.Context(), outsider(t, s))
	_, err := conn.Exec(t.Context(), s.sql(p.writes[0].sql), p.writes[0].args...)
	if err == nil {
		_, err = conn.Exec(t.Context(), "commit")
	}
	if moves == nil && kindOf(err) != again {
		t.Errorf("base moved, and the commit beside it: %v", err)
	}
	if moves != nil && kindOf(moves) != again {
		t.Error(moves)
	}
}
