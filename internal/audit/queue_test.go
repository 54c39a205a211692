package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

func end(l *audit.Log, from, to int) {
	for i := from; i < to; i++ {
		l.Observer().CallEnd(runtime.CallInfo{ID: fmt.Sprint("w-", i)}, clean)
	}
}

// Records that nobody waits for are written together: when their time is up, when
// there are enough, before one that is waited for, and at the end.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		l := audit.New(j, audit.Options{Records: 10})
		written := func(writes, records int) {
			t.Helper()
			synctest.Wait()
			if rs, _ := read(t, j, audit.Filter{}); len(rs) != records || j.count() != writes {
				t.Errorf("%d writes, %d records, want %d, %d", j.count(), len(rs), writes, records)
			}
		}
		end(l, 0, 3)
		written(0, 0)
		time.Sleep(audit.DefaultEvery - time.Millisecond)
		written(0, 0)
		time.Sleep(time.Millisecond)
		written(1, 3)
		end(l, 3, 12)
		written(1, 3)
		end(l, 12, 13)
		written(2, 13)
		end(l, 13, 14)
		writeIDs(l, 14, 15)
		written(3, 15)
		end(l, 15, 16)
		l.Flush()
		written(4, 16)
		end(l, 16, 17)
		l.Close()
		written(5, 17)
		rs, _ := read(t, j, audit.Filter{})
		for i, id := range callIDs(rs) {
			if id != fmt.Sprint("w-", i) {
				t.Errorf("record %d is of %s", i, id)
			}
		}
		if l.Lost() != 0 {
			t.Errorf("lost %d", l.Lost())
		}
	})
}

// Where records come faster than they are written, calls wait; nothing is dropped.
func TestFullWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.gate, j.begun = make(chan struct{}), make(chan struct{}, 100)
		l := audit.New(j, audit.Options{Records: 10})
		var ended sync.WaitGroup
		done := 0
		var mu sync.Mutex
		for i := range 100 {
			ended.Go(func() {
				end(l, i, i+1)
				mu.Lock()
				defer mu.Unlock()
				done++
			})
		}
		synctest.Wait()
		mu.Lock()
		if done >= 100 || done < 10 {
			t.Errorf("%d calls have ended while nothing is written", done)
		}
		mu.Unlock()
		close(j.gate)
		ended.Wait()
		l.Close()
		rs, _ := read(t, j, audit.Filter{})
		ids := callIDs(rs)
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 100 || l.Lost() != 0 || j.count() > 20 {
			t.Errorf("%d records in %d writes, %d lost", len(ids), j.count(), l.Lost())
		}
	})
}

// Several that must be durable at the same time share a write.
func TestDurableTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.gate, j.begun = make(chan struct{}), make(chan struct{}, 100)
		l := audit.New(j, audit.Options{})
		var work sync.WaitGroup
		for i := range 50 {
			work.Go(func() { writeIDs(l, i, i+1) })
		}
		synctest.Wait()
		close(j.gate)
		work.Wait()
		l.Close()
		if rs, _ := read(t, j, audit.Filter{}); len(rs) != 50 || j.count() > 2 {
			t.Errorf("%d records in %d writes", len(rs), j.count())
		}
	})
}

// What the store does not take is tried again and told of; what may have been
// written is not written twice.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var mu sync.Mutex
		var told []error
		l := audit.New(j, audit.Options{OnError: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		}})
		j.failing(errDown)
		end(l, 0, 1)
		writeIDs(l, 1, 2) // goes on all the same
		mu.Lock()
		if len(told) != 1 || !errors.Is(told[0], errDown) || !strings.Contains(told[0].Error(), "audit record (violation, call w-1)") {
			t.Errorf("told %v", told)
		}
		mu.Unlock()
		j.failing(nil)
		time.Sleep(audit.DefaultEvery)
		synctest.Wait()
		if rs, _ := read(t, j, audit.Filter{}); !slices.Equal(callIDs(rs), []string{"w-0", "w-1"}) || l.Lost() != 0 {
			t.Errorf("%v, lost %d", callIDs(rs), l.Lost())
		}
		j.failing(fmt.Errorf("%w: %w", store.ErrUnknown, errDown))
		writeIDs(l, 2, 3)
		j.failing(nil)
		writeIDs(l, 3, 4)
		if rs, _ := read(t, j, audit.Filter{}); !slices.Equal(callIDs(rs), []string{"w-0", "w-1", "w-3"}) || l.Lost() != 1 {
			t.Errorf("%v, lost %d", callIDs(rs), l.Lost())
		}
		j.failing(errDown)
		end(l, 4, 5)
		l.Close()
		writeIDs(l, 5, 6)
		if rs, _ := read(t, j, audit.Filter{}); len(rs) != 3 || l.Lost() != 3 {
			t.Errorf("%v, lost %d", callIDs(rs), l.Lost())
		}
		if last := told[len(told)-1]; !errors.Is(last, store.ErrClosed) {
			t.Errorf("after the end: %v", last)
		}
	})
}

// While the store fails no more is kept than there is room for, and what somebody
// waited for longest.
func TestStoreFailsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		l := audit.New(j, audit.Options{Records: 5})
		j.failing(errDown)
		writeIDs(l, 0, 10)
		end(l, 10, 100)
		j.failing(nil)
		l.Close()
		rs, _ := read(t, j, audit.Filter{})
		ids := callIDs(rs)
		if len(ids) > 20 || len(ids) < 10 || len(ids)+l.Lost() != 100 {
			t.Errorf("%d records, %d lost", len(ids), l.Lost())
		}
		for i := range 10 {
			if ids[i] != fmt.Sprint("w-", i) {
				t.Errorf("record %d is of %s", i, ids[i])
			}
		}
	})
}

func BenchmarkCleanRead(b *testing.B) {
	l := start(b, openStore(b, b.TempDir()), audit.Options{})
	o := l.Observer()
	for b.Loop() {
		o.CallEnd(info, clean)
	}
}

func BenchmarkDurable(b *testing.B) {
	l := start(b, openStore(b, b.TempDir()), audit.Options{})
	o := l.Observer()
	for b.Loop() {
		o.Violation(info, violation)
	}
}
