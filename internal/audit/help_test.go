package audit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime"
)

var (
	info      = runtime.CallInfo{ID: "c1", Package: "notes", Tool: "add_note"}
	violation = capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpWrite, Object: "/data/a", Phase: capabilities.PhaseOperation}
	denial    = capabilities.Denial{Capability: capabilities.CapLink, Operation: capabilities.OpCreate, Object: "/data/l", Errno: capabilities.EPERM}
	clean     = &runtime.Result{Outcome: runtime.OK}
)

// never is an interval that does not end in a test.
const never = 24 * time.Hour

var errDown = errors.New("down")

// journal is one in memory that counts, and can be made to fail or to wait.
type journal struct {
	*memstore.Store

	mu     sync.Mutex
	writes int
	fail   error
	gate   chan struct{} // each write takes one; nil: none waits
	begun  chan struct{} // gets one when a write waits at the gate
}

func newJournal() *journal { return &journal{Store: memstore.New()} }

func (j *journal) Append(ctx context.Context, rs ...store.Record) error {
	if j.gate != nil {
		j.begun <- struct{}{}
		<-j.gate
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes++
	if j.fail != nil {
		return j.fail
	}
	return j.Store.Append(ctx, rs...)
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

func (j *journal) failing(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = err
}

// start returns a log that is closed at the end of the test.
func start(t testing.TB, j store.Journal, o audit.Options) *audit.Log {
	t.Helper()
	l := audit.New(j, o)
	t.Cleanup(l.Close)
	return l
}

func read(t testing.TB, j store.Journal, f audit.Filter) (rs []audit.Record, skipped int) {
	t.Helper()
	skipped, err := audit.Read(context.Background(), j, f, func(r audit.Record) error {
		rs = append(rs, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rs, skipped
}

func callIDs(rs []audit.Record) []string {
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.CallID)
	}
	return ids
}

func writeIDs(l *audit.Log, from, to int) {
	for i := from; i < to; i++ {
		l.Observer().Violation(runtime.CallInfo{ID: fmt.Sprint("w-", i)}, violation)
	}
}

func openStore(t testing.TB, folder string) *sqlite.Store {
	t.Helper()
	s, err := openAt(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openAt(folder string) (*sqlite.Store, error) {
	return sqlite.Open(context.Background(), sqlite.Options{Folder: folder})
}

// fataler is a test, also one of many with random values.
type fataler interface {
	Helper()
	Fatal(args ...any)
}
