package audit_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

// follow follows a journal in the background and hands each call's id to a
// channel; an empty one says that records were missed.
func follow(t testing.TB, j store.Journal) (ids chan string, stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ids, done := make(chan string), make(chan error, 1)
	send := func(id string) {
		select {
		case ids <- id:
		case <-ctx.Done():
		}
	}
	go func() {
		skipped, err := audit.Follow(ctx, j, audit.Filter{}, func(r audit.Record) error { send(r.CallID); return nil }, func() { send("") })
		if skipped > 0 && err == nil {
			err = fmt.Errorf("%d records skipped", skipped)
		}
		done <- err
	}()
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return ids, stop
}

func TestFollow(t *testing.T) {
	j := openStore(t, t.TempDir())
	l := start(t, j, audit.Options{})
	ids, stop := follow(t, j)
	for i := range 5 {
		if i%2 == 0 {
			writeIDs(l, i, i+1)
		} else {
			end(l, i, i+1)
		}
		if id := <-ids; id != fmt.Sprint("w-", i) {
			t.Errorf("record %d is of %q", i, id)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Whatever several stores of one folder write and prune, and whenever a follower
// looks: it gets every record that was not pruned before it looked, once and in
// order, and is told where some were.
func TestFollowerGetsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "audit")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		open := func() store.Store {
			s, err := openAt(folder)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		stores := []store.Store{open(), open()}
		var logs []*audit.Log
		for _, s := range stores {
			logs = append(logs, audit.New(s, audit.Options{Every: never}))
		}
		defer func() {
			for i, s := range stores {
				logs[i].Close()
				s.Close()
			}
		}()
		var followed []string
		missed, pruned, written, seen := 0, 0, 0, 0
		f := audit.NewFollower(t.Context(), stores[0], func(r audit.Record) error {
			followed = append(followed, r.CallID)
			return nil
		}, func() { missed++ })
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				i := rapid.IntRange(0, len(logs)-1).Draw(t, "log")
				logs[i].Observer().Violation(runtime.CallInfo{ID: fmt.Sprint("w-", written)}, violation)
				written++
			},
			"die": func(t *rapid.T) {
				i := rapid.IntRange(1, len(logs)-1).Draw(t, "log")
				logs[i].Close()
				if err := stores[i].Close(); err != nil {
					t.Fatal(err)
				}
				stores[i] = open()
				logs[i] = audit.New(stores[i], audit.Options{Every: never})
			},
			"prune": func(t *rapid.T) {
				if err := stores[1].Prune(t.Context(), store.Prune{Now: time.Now(), RecordBytes: 1}); err != nil {
					t.Fatal(err)
				}
				pruned = written
			},
			"look": func(t *rapid.T) {
				had, told := len(followed), missed
				if err := f.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
				// What was pruned before this look and not seen by an earlier one.
				gone := max(pruned-seen, 0)
				want := written - seen - gone
				if len(followed)-had != want {
					t.Fatalf("got %d, want %d", len(followed)-had, want)
				}
				for i, id := range followed[had:] {
					if id != fmt.Sprint("w-", seen+gone+i) {
						t.Fatalf("record %d is of %s", i, id)
					}
				}
				if want > 0 {
					if gone > 0 != (missed > told) {
						t.Fatalf("%d are gone, told %d times", gone, missed-told)
					}
					seen = written
				}
			},
			"": func(t *rapid.T) {
				v, err := audit.Verify(t.Context(), stores[0], audit.VerifyOptions{})
				if err != nil || len(v.Faults) > 0 {
					t.Fatalf("%v, %v", v, err)
				}
			},
		})
	})
}

// Who is told that records are gone is told before the record that follows.
func TestFollowTellsWhatIsMissed(t *testing.T) {
	j := openStore(t, t.TempDir())
	l := start(t, j, audit.Options{})
	writeIDs(l, 0, 1)
	ids, stop := follow(t, j)
	got := []string{<-ids} // the follower waits now, as if it was stopped
	writeIDs(l, 1, 6)
	end(l, 6, 7)
	l.Flush()
	if err := j.Prune(t.Context(), store.Prune{Now: time.Now(), RecordBytes: 1}); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 7, 9)
	for len(got) < 4 {
		got = append(got, <-ids)
	}
	if want := []string{"w-0", "", "w-7", "w-8"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
