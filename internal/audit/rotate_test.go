package audit_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

var (
	writerState = flag.String("writer-state", "", "write records into this state folder: what the test starts as a process of its own")
	writerName  = flag.String("writer-name", "", "the beginning of the records' call ids")
	writerCount = flag.Int("writer-count", 0, "how many records")
)

const smallFile = 4000

// TestWriterProcess is a process that writes. It prints the id of each record
// after it was written.
func TestWriterProcess(t *testing.T) {
	if *writerState == "" {
		t.Skip("started by TestSeveralProcesses only")
	}
	l, err := audit.Open(*writerState, audit.Options{MaxSize: smallFile, Keep: audit.MaxKeep})
	if err != nil {
		t.Fatal(err)
	}
	l.OnError(func(err error) { t.Error(err) })
	for i := range *writerCount {
		id := fmt.Sprintf("%s-%d", *writerName, i)
		l.Observer().Violation(runtime.CallInfo{ID: id}, violation)
		fmt.Println(id)
	}
}

func startWriter(t *testing.T, state, name string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$", "-writer-state="+state, "-writer-name="+name, fmt.Sprint("-writer-count=", n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// inOrder fails where records of a writer are missing, doubled or not in the
// order in which it wrote them.
func inOrder(t *testing.T, ids []string, written map[string]int) {
	t.Helper()
	next := map[string]int{}
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "-")
		if want := fmt.Sprintf("%s-%d", name, next[name]); id != want {
			t.Fatalf("record %s, want %s", id, want)
		}
		next[name]++
	}
	for name, n := range written {
		if next[name] < n {
			t.Errorf("%d records of %s, which wrote %d", next[name], name, n)
		}
	}
}

// Three processes write and rotate one log, a fourth is killed at it, and one
// follows it. Nothing is lost, torn or doubled.
func TestSeveralProcesses(t *testing.T) {
	const writers, n, killedAfter = 3, 150, 20
	state := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want := map[string]int{"dying": killedAfter}
	var followed []string
	seen := map[string]int{}
	done := make(chan error, 1)
	go func() {
		_, err := audit.Follow(ctx, state, audit.Filter{}, func(r audit.Record) error {
			followed = append(followed, r.CallID)
			name, _, _ := strings.Cut(r.CallID, "-")
			if seen[name]++; seen["w0"]+seen["w1"]+seen["w2"] == writers*n {
				cancel()
			}
			return nil
		}, func() { t.Error("told that records are gone") })
		done <- err
	}()
	var cmds []*exec.Cmd
	for w := range writers {
		cmd, lines := startWriter(t, state, fmt.Sprint("w", w), n)
		cmds = append(cmds, cmd)
		want[fmt.Sprint("w", w)] = n
		go func() {
			for lines.Scan() {
			}
		}()
	}
	dying, lines := startWriter(t, state, "dying", n)
	for range killedAfter {
		lines.Scan()
	}
	if err := dying.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dying.Wait()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	rs, skipped := read(t, state, audit.Filter{})
	inOrder(t, callIDs(rs), want)
	if skipped > 1 {
		t.Errorf("%d torn records: only the killed process can have left one", skipped)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	delete(want, "dying")
	inOrder(t, followed, want)
	paths := logFiles(t, state)
	if len(paths) < 10 {
		t.Errorf("only %d files: not rotated", len(paths))
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() > smallFile {
			t.Errorf("%s: %v, %d bytes, at most %d", path, err, info.Size(), smallFile)
		}
	}
}

func callIDs(rs []audit.Record) []string {
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.CallID)
	}
	return ids
}

func logFiles(t *testing.T, state string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(state, "log*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func openSmall(t *testing.T, state string, o audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(state, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func writeIDs(l *audit.Log, from, to int) {
	for i := from; i < to; i++ {
		l.Observer().Violation(runtime.CallInfo{ID: fmt.Sprint("w-", i)}, violation)
	}
}

// Only the files to keep stay, and they hold the newest records.
func TestKeep(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 500, Keep: 2})
	writeIDs(l, 0, 20)
	if got := logFiles(t, state); len(got) != 3 {
		t.Fatalf("files: %v", got)
	}
	rs, skipped := read(t, state, audit.Filter{})
	ids := callIDs(rs)
	if len(ids) < 4 || skipped != 0 || ids[len(ids)-1] != "w-19" {
		t.Fatalf("%v, %d skipped", ids, skipped)
	}
	for i, id := range ids {
		if want := fmt.Sprint("w-", 20-len(ids)+i); id != want {
			t.Errorf("record %d: %s, want %s", i, id, want)
		}
	}
	// Fewer are to be kept now.
	writeIDs(openSmall(t, state, audit.Options{MaxSize: 500, Keep: 1}), 20, 25)
	if got := logFiles(t, state); len(got) != 2 {
		t.Errorf("files: %v", got)
	}
}

// A record that is larger than a file may be has one of its own.
func TestLargeRecord(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 1})
	writeIDs(l, 0, 4)
	rs, _ := read(t, state, audit.Filter{})
	inOrder(t, callIDs(rs), map[string]int{"w": 4})
	if got := logFiles(t, state); len(got) != 4 {
		t.Errorf("files: %v", got)
	}
}

// A rotation that was killed between two renames left a gap: the next one closes
// it and takes nothing away.
func TestGapIsClosed(t *testing.T) {
	for gap := range 4 {
		state := t.TempDir()
		o := audit.Options{MaxSize: 1, Keep: 5}
		l := openSmall(t, state, o)
		writeIDs(l, 0, 5) // log.4 to log
		for age := 4; age > gap; age-- {
			if err := os.Rename(filepath.Join(state, ageName(age)), filepath.Join(state, ageName(age+1))); err != nil {
				t.Fatal(err)
			}
		}
		writeIDs(l, 5, 6)
		rs, _ := read(t, state, audit.Filter{})
		inOrder(t, callIDs(rs), map[string]int{"w": 6})
	}
}

func TestOptionsOutOfBounds(t *testing.T) {
	for _, o := range []audit.Options{{MaxSize: -1}, {Keep: -1}, {Keep: audit.MaxKeep + 1}} {
		state := filepath.Join(t.TempDir(), "state")
		if l, err := audit.Open(state, o); l != nil || !errors.Is(err, audit.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := os.Stat(state); err == nil {
			t.Errorf("%+v: made the folder", o)
		}
	}
}

// A process that is stopped while it holds the lock costs nobody a record.
func TestLockIsStuck(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 300})
	l.SetLockWait(time.Millisecond)
	lock := flock.New(filepath.Join(state, audit.LockName))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 0, 6)
	if got := logFiles(t, state); len(got) != 1 {
		t.Errorf("rotated without the lock: %v", got)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 6, 7)
	rs, _ := read(t, state, audit.Filter{})
	inOrder(t, callIDs(rs), map[string]int{"w": 7})
	if got := logFiles(t, state); len(got) != 2 || l.Lost() != 0 {
		t.Errorf("files %v, lost %d", got, l.Lost())
	}
}

// Where files cannot be moved the log grows on, and says so once.
func TestCannotRotate(t *testing.T) {
	state := t.TempDir()
	l := openSmall(t, state, audit.Options{MaxSize: 300, Keep: 1})
	var errs []error
	l.OnError(func(err error) { errs = append(errs, err); l.Lost() })
	blocked := filepath.Join(state, "log.1.jsonl")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 0, 6)
	if len(errs) != 1 || l.Lost() != 0 {
		t.Errorf("lost %d, errors %v", l.Lost(), errs)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 6, 7)
	rs, _ := read(t, state, audit.Filter{})
	inOrder(t, callIDs(rs), map[string]int{"w": 7})
	if got := logFiles(t, state); len(got) != 2 {
		t.Errorf("files: %v", got)
	}
}

// A log that somebody takes away is begun again.
func TestFileIsTakenAway(t *testing.T) {
	state := t.TempDir()
	l := open(t, state)
	writeIDs(l, 0, 1)
	if err := os.Remove(filepath.Join(state, audit.FileName)); err != nil {
		t.Fatal(err)
	}
	writeIDs(l, 1, 2)
	rs, _ := read(t, state, audit.Filter{})
	if ids := callIDs(rs); !slices.Equal(ids, []string{"w-1"}) || l.Lost() != 0 {
		t.Errorf("%v, lost %d", ids, l.Lost())
	}
}

// What others call by names like the log's is not the log's.
func TestOtherFiles(t *testing.T) {
	state := t.TempDir()
	writeIDs(open(t, state), 0, 1)
	for _, name := range []string{"log.x.jsonl", "log.1000000000.jsonl", "log..jsonl", "log.-1.jsonl", "log.1.jsonl.gz"} {
		if err := os.WriteFile(filepath.Join(state, name), []byte(`{"type":"call"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if rs, skipped := read(t, state, audit.Filter{}); len(rs) != 1 || skipped != 0 {
		t.Errorf("%v, %d skipped", callIDs(rs), skipped)
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := audit.Open(b.TempDir(), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	o := l.Observer()
	for b.Loop() {
		o.Violation(info, violation)
	}
}
