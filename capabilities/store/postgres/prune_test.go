package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// TestNamedWhilePruned: a commit that names an old blob finds it, or not; when it
// was done the blob is there.
func TestNamedWhilePruned(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.pruneBlobs(t.Context(), store.Prune{Now: time.Now().Add(48 * time.Hour)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	kept, gone := 0, 0
	for i := range 300 {
		d, err := s.PutBlob(t.Context(), fmt.Append(nil, "blob ", i))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Commit(t.Context(), &store.Commit{ID: fmt.Sprint(i), Writes: []store.Write{{Key: key(fmt.Sprint(i)), Blobs: []store.Digest{d}}}})
		switch {
		case errors.Is(err, store.ErrGone):
			gone++
			continue
		case err != nil:
			t.Fatal(err)
		}
		kept++
		if _, err := s.Blob(t.Context(), d); err != nil {
			t.Fatalf("a blob that is named: %v", err)
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d kept, %d gone", kept, gone)
	if kept == 0 {
		t.Error("no commit found its blob")
	}
}

// TestPruneBatches removes more than one batch takes.
func TestPruneBatches(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	const keys = 2*pruneRows + 7
	for round := range 2 {
		c := &store.Commit{ID: fmt.Sprint(round), Time: time.Now()}
		for i := range keys {
			w := put(fmt.Sprintf("%05d", i), "v")
			w.Expires = time.Now().Add(time.Minute)
			c.Writes = append(c.Writes, w)
			c.Records = append(c.Records, store.Record{Time: time.Now(), Data: []byte("{}")})
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2*pruneBlobs + 3 {
		if _, err := s.PutBlob(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	records(t, s, 2*keys)
	conn := outsider(t, s)
	count := func(table string) (n int) {
		if err := conn.QueryRow(t.Context(), s.sql("select count(*) from @."+table)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for table, want := range map[string]int{"live": keys, "replaced": keys, "records": 2 * keys, "blobs": 2*pruneBlobs + 3, "commits": 2} {
		if n := count(table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(48 * time.Hour), Records: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"live": 0, "replaced": 0, "records": 0, "blobs": 0, "commits": 1} {
		if n := count(table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	whole(t, s, nil)
}

// TestLongNames: names that differ only behind what is in the index.
func TestLongNames(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	same := strings.Repeat("p", headSize)
	names := []string{same[1:], same, same + "\x00", same + "a", same + "ab", same + "b", same + "\xff", same[1:] + "q"}
	c := &store.Commit{ID: "all"}
	for _, n := range slices.Backward(names) {
		c.Writes = append(c.Writes, put(n, "of "+n[min(len(n), headSize):]))
	}
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for i, from := range names {
		for j, to := range names {
			es := scan(t, s, from, to)
			var got []string
			for _, e := range es {
				got = append(got, e.Name)
			}
			if want := names[i:max(i, j)]; !slices.Equal(got, want) {
				t.Errorf("from %d to %d: %d names, want %d", i, j, len(got), len(want))
			}
			v := write(t, s, fmt.Sprint("w", i, j), put(from, "new"))
			if e := get(t, now(t, s), from); e.Version != v {
				t.Errorf("name %d has version %d, want %d", i, e.Version, v)
			}
		}
	}
}

// TestSnapshotAge: a snapshot is not read beyond its age.
func TestSnapshotAge(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	write(t, s, "1", put("k", "1"))
	sn := now(t, s).(*snapshot)
	sn.taken = sn.taken.Add(-store.SnapshotAge + time.Minute)
	if e := get(t, sn, "k"); string(e.Value) != "1" {
		t.Errorf("the key is %q", e.Value)
	}
	sn.taken = sn.taken.Add(-2 * time.Minute)
	_, err := sn.Get(t.Context(), key("k"))
	_, err2 := sn.Scan(t.Context(), store.Range{Space: space}, 9)
	if !errors.Is(err, store.ErrGone) || !errors.Is(err2, store.ErrGone) {
		t.Errorf("%v, %v; want it gone", err, err2)
	}
}

// TestUsageOfOthers: what another store writes is counted before long.
func TestUsageOfOthers(t *testing.T) {
	server := start(t)
	url := fresh(server.URL())
	a, b := open(t, Options{URL: url}), open(t, Options{URL: url})
	write(t, a, "1", put("k", "1"))
	for _, s := range []*Store{a, b} {
		if u, err := s.Usage(t.Context(), space); err != nil || u != (store.Usage{Keys: 1, Bytes: 2}) {
			t.Errorf("usage %v, %v", u, err)
		}
	}
	write(t, b, "2", put("more", "1"))
	if u, err := b.Usage(t.Context(), space); err != nil || u != (store.Usage{Keys: 2, Bytes: 7}) {
		t.Errorf("usage of its own %v, %v", u, err)
	}
	c := a.usage.spaces[space]
	c.at = c.at.Add(-usageAge)
	a.usage.spaces[space] = c
	if u, err := a.Usage(t.Context(), space); err != nil || u != (store.Usage{Keys: 2, Bytes: 7}) {
		t.Errorf("usage of the other %v, %v", u, err)
	}
}

// TestExpiredPruned: a snapshot that saw a key which expired and was removed does
// not show that it was absent.
func TestExpiredPruned(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	w := put("k", "1")
	w.Expires = time.Now().Add(time.Minute)
	write(t, s, "1", w, put("stays", "1"))
	old := now(t, s)
	if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(3 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if es, err := old.Get(t.Context(), key("k")); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v, %v; want it gone", es, err)
	}
	if es, err := old.Scan(t.Context(), store.Range{Space: space}, 9); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v, %v; want it gone", es, err)
	}
	if es := scan(t, s, "", ""); len(es) != 1 || es[0].Name != "stays" {
		t.Errorf("a new snapshot shows %v", es)
	}
}
