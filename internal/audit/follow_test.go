package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

// Whatever several logs write, crash at and rotate, and whenever a follower
// looks: it gets every record once and in order, and so does who reads.
func TestFollowerGetsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state, err := os.MkdirTemp("", "audit")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(state)
		var logs []*audit.Log
		for range 3 {
			l, err := audit.Open(state, audit.Options{MaxSize: rapid.SampledFrom([]int64{1500, 600, 1}).Draw(t, "max size"), Keep: audit.MaxKeep})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			logs = append(logs, l)
		}
		var followed []string
		follower := audit.NewFollower(func(r audit.Record) error {
			followed = append(followed, r.CallID)
			return nil
		})
		defer follower.Close()
		look := func() {
			if err := follower.Look(state); err != nil {
				t.Fatal(err)
			}
		}
		written, torn := 0, 0
		current := filepath.Join(state, audit.FileName)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				logs[rapid.IntRange(0, len(logs)-1).Draw(t, "log")].Observer().Violation(runtime.CallInfo{ID: fmt.Sprint("w-", written)}, violation)
				written++
			},
			"look": func(*rapid.T) { look() },
			"die in a record": func(t *rapid.T) {
				b, err := os.ReadFile(current)
				if err != nil || len(b) == 0 || b[len(b)-1] != '\n' {
					t.Skip("no file, or a torn record already")
				}
				torn++
				if err := os.WriteFile(current, append(b, `{"time":"20`...), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"die in a rotation": func(t *rapid.T) { cutRotation(t, state) },
		})
		look()
		look()
		check := func(who string, ids []string, skipped int) {
			if len(ids) != written || skipped > torn || skipped < torn-1 {
				t.Fatalf("%s: %d of %d records, %d of %d torn", who, len(ids), written, skipped, torn)
			}
			for i, id := range ids {
				if id != fmt.Sprint("w-", i) {
					t.Fatalf("%s: record %d is %s", who, i, id)
				}
			}
		}
		check("follower", followed, follower.Skipped())
		if follower.Missed() != 0 {
			t.Fatalf("told %d times that records are gone", follower.Missed())
		}
		if follower.Open() != len(logFilesIn(state)) {
			t.Fatalf("%d files open of %d", follower.Open(), len(logFilesIn(state)))
		}
		var ids []string
		skipped, err := audit.Read(state, audit.Filter{}, func(r audit.Record) error {
			ids = append(ids, r.CallID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		check("reader", ids, skipped)
	})
}

// cutRotation renames some of the files that a rotation would, as a process that
// is killed leaves them.
func cutRotation(t *rapid.T, state string) {
	names := logFilesIn(state)
	free := 1
	for slices.Contains(names, filepath.Join(state, ageName(free))) {
		free++
	}
	left := rapid.IntRange(0, free-1).Draw(t, "renames left")
	current := slices.Contains(names, filepath.Join(state, audit.FileName))
	for age := free; age > left && (age > 1 || current); age-- {
		if err := os.Rename(filepath.Join(state, ageName(age-1)), filepath.Join(state, ageName(age))); err != nil {
			t.Fatal(err)
		}
	}
}

func ageName(age int) string {
	if age == 0 {
		return audit.FileName
	}
	return fmt.Sprintf("log.%d.jsonl", age)
}

func logFilesIn(state string) []string {
	paths, _ := filepath.Glob(filepath.Join(state, "log*.jsonl"))
	return paths
}

// Who follows and falls behind by more files than are kept goes on with the
// oldest that is there, and is told; who follows a log that is taken away, with
// the new one.
func TestFollowerFallsBehind(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 1, Keep: 2})
	var followed []string
	follower := audit.NewFollower(func(r audit.Record) error {
		followed = append(followed, r.CallID)
		return nil
	})
	defer follower.Close()
	look := func(missed int, want ...string) {
		t.Helper()
		followed = nil
		if err := follower.Look(state); err != nil || !slices.Equal(followed, want) || follower.Missed() != missed {
			t.Errorf("%v, %v, missed %d times, want %v, %d", followed, err, follower.Missed(), want, missed)
		}
	}
	look(0)
	writeIDs(l, 0, 1)
	look(0, "w-0")
	writeIDs(l, 1, 3)
	look(0, "w-1", "w-2") // w-0 is the oldest that is kept
	writeIDs(l, 3, 9)
	look(1, "w-6", "w-7", "w-8")
	writeIDs(l, 9, 10)
	look(1, "w-9")
	writeIDs(l, 10, 14)
	look(2, "w-11", "w-12", "w-13")
	for _, path := range logFiles(t, state) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	look(2)
	writeIDs(l, 14, 16)
	look(2, "w-14", "w-15")
	look(2)
	for _, path := range logFiles(t, state) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	writeIDs(l, 16, 17)
	look(2, "w-16")
}

// Who is told that records are gone is told before the record that follows.
func TestFollowTellsWhatIsMissed(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 1, Keep: 2})
	writeIDs(l, 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	_, err := audit.Follow(ctx, state, audit.Filter{}, func(r audit.Record) error {
		if got = append(got, r.CallID); len(got) == 1 {
			writeIDs(l, 1, 9) // as if it was stopped
		}
		if r.CallID == "w-8" {
			cancel()
		}
		return nil
	}, func() { got = append(got, "missed") })
	if want := []string{"w-0", "missed", "w-6", "w-7", "w-8"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Whatever stands in a log, a whole record on a line of its own is read.
func FuzzRead(f *testing.F) {
	f.Add("{}\n{\"time\":\"2", 10)
	f.Add("null\n[]\n\x00\xff", 0)
	f.Add(strings.Repeat("[", 20000), 3)
	f.Fuzz(func(t *testing.T, junk string, cut int) {
		state := t.TempDir()
		l := open(t, state)
		writeIDs(l, 0, 1)
		path := filepath.Join(state, audit.FileName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(junk, "w-0") {
			t.Skip("holds the record itself")
		}
		cut = min(max(cut, 0), len(junk))
		file := junk[:cut] + "\n" + string(b) + junk[cut:]
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		skipped, err := audit.Read(state, audit.Filter{CallID: "w-0"}, func(audit.Record) error { n++; return nil })
		if err != nil || n != 1 || skipped > strings.Count(file, "\n")+1 {
			t.Errorf("%d records, %d skipped, %v", n, skipped, err)
		}
	})
}
