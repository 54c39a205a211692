package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// neverWrong demands that a snapshot that may be too old tells so or tells the
// truth.
func (h *harness) neverWrong(s store.Snapshot, name, value string) {
	h.Helper()
	es, err := s.Get(h.ctx(), key(name))
	if err == nil {
		if string(es[0].Value) != value {
			h.Errorf("an old snapshot has %q at %q, and had %q", es[0].Value, name, value)
		}
	} else if !errors.Is(err, store.ErrGone) {
		h.Errorf("an old snapshot: %v, want it gone", err)
	}
	es, err = s.Scan(h.ctx(), store.Range{Space: space, From: name, To: name + "\x00"}, 9)
	if err == nil {
		if len(es) != 1 || string(es[0].Value) != value {
			h.Errorf("an old snapshot shows %s at %q, and had %q", pairs(es), name, value)
		}
	} else if !errors.Is(err, store.ErrGone) {
		h.Errorf("an old snapshot: %v, want it gone", err)
	}
}

func testPruneVersions(h *harness) {
	h.write(put("k", "1"), put("deleted", "1"), put("stays", "1"))
	old := h.snapshot()
	for i := range 10 {
		h.write(put("k", fmt.Sprint(i)))
	}
	h.write(del("deleted"))
	for _, p := range []store.Prune{
		{Now: time.Now()},
		{Now: time.Now().Add(50 * time.Minute)},
		{Now: time.Now().Add(50 * time.Minute), Replaced: time.Nanosecond},
		{Now: time.Now().Add(10 * day), Replaced: 20 * day},
	} {
		h.must(h.Prune(h.ctx(), p))
		h.has(old, "k", "1")
		h.has(old, "deleted", "1")
		if got := pairs(h.scan(old, all(), 9)); got != `"deleted"=1 "k"=1 "stays"=1 ` {
			h.Errorf("the old snapshot shows %s", got)
		}
	}
	h.must(h.Prune(h.ctx(), later(2*time.Hour)))
	h.neverWrong(old, "k", "1")
	h.neverWrong(old, "deleted", "1")
	h.neverWrong(old, "stays", "1")
	now := h.snapshot()
	if got := pairs(h.scan(now, all(), 9)); got != `"k"=9 "stays"=1 ` {
		h.Errorf("after pruning: %s", got)
	}
	// Versions go on, and a commit that was done is still known.
	c := commitOf(put("k", "10"))
	v := h.commit(c)
	h.must(h.Prune(h.ctx(), later(2*time.Hour)))
	if w := h.commit(c); w != v {
		h.Errorf("a commit that was done answers %d, and %d then", w, v)
	}
	h.must(h.Prune(h.ctx(), later(100*day)))
	if w := h.write(put("k", "11")); w <= v {
		h.Errorf("version %d after %d", w, v)
	}
}

func testPruneExpired(h *harness) {
	w := put("soon", "v")
	w.Expires = time.Now().Add(time.Hour)
	v := h.write(w, put("stays", "v"))
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now()}))
	h.has(h.snapshot(), "soon", "v")
	h.must(h.Prune(h.ctx(), later(3*time.Hour)))
	h.must(h.Prune(h.ctx(), later(6*time.Hour)))
	if e := h.now("soon"); e.Version != 0 {
		h.Errorf("a key that expired is there: %v", e)
	}
	if u, err := h.Usage(h.ctx(), space); err != nil || u != (store.Usage{Keys: 1, Bytes: 6}) {
		h.Errorf("usage %v, %v", u, err)
	}
	if w := h.write(put("soon", "v")); w == v {
		h.Errorf("version %d again", w)
	}
}

// aged are records of so many days ago.
func (h *harness) aged(days ...int) {
	h.Helper()
	for _, d := range days {
		r := store.Record{Time: time.Now().Add(-time.Duration(d) * day), Data: fmt.Appendf(nil, `{"days":%d}`, d)}
		if d%2 == 0 {
			h.must(h.Append(h.ctx(), r))
			continue
		}
		c := commitOf()
		c.Records = []store.Record{r}
		h.commit(c)
	}
}

func testPruneRecords(h *harness) {
	h.aged(9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
	all := h.records(10)
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now(), Records: 100 * day}))
	h.records(10)
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now(), Records: 5*day + 12*time.Hour}))
	left := h.records(6)
	if string(left[0].Data) != `{"days":5}` {
		h.Errorf("the oldest record left is %s", left[0].Data)
	}
	h.verified()
	heads, err := h.Heads(h.ctx())
	h.must(err)
	for _, head := range heads { // a store may have several chains
		if len(heads) == 1 && (head.First != 5 || head.N != 10 || head.Prev != all[3].Hash) {
			h.Errorf("head %+v", head)
		}
	}
	// Whoever stood at a record that is gone goes on with the oldest.
	page, err := h.Records(h.ctx(), all[1].Cursor, 1)
	h.must(err)
	if len(page) != 1 || string(page[0].Data) != `{"days":5}` {
		h.Errorf("after a record that is gone: %v", page)
	}
	h.aged(0, 0)
	h.verified()
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now().Add(30 * day), Records: day}))
	h.records(0)
	h.verified()
	h.aged(0, 1)
	if got := h.records(2); len(heads) == 1 && (got[0].N != 13 || got[0].Prev == (store.Digest{})) {
		h.Errorf("after all records were pruned the chain goes on with %+v", got[0])
	}
	h.verified()
}

func testPruneBytes(h *harness) {
	h.aged(9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now(), RecordBytes: 1 << 20}))
	h.records(10)
	page := make([]byte, 1000)
	for i := range page {
		page[i] = '1'
	}
	for range 8 {
		h.must(h.Append(h.ctx(), store.Record{Time: time.Now(), Data: page}))
	}
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now(), RecordBytes: 5500}))
	heads, err := h.Heads(h.ctx())
	h.must(err)
	left := 0
	for _, head := range heads {
		left += int(head.N - head.First + 1)
	}
	if left < 3 || left > 5 {
		h.Errorf("in 5500 bytes there are %d records of 1000", left)
	}
	h.verified()
	h.aged(0)
	h.verified()
}

// testPruneNothing: the zero value removes nothing that anybody could miss.
func testPruneNothing(h *harness) {
	d := h.putBlob("blob")
	h.aged(400)
	h.write(put("k", "1"))
	old := h.snapshot()
	h.write(put("k", "2"))
	h.must(h.Prune(h.ctx(), store.Prune{}))
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now()}))
	h.has(old, "k", "1")
	h.hasBlob(d, "blob")
	h.records(1)
	h.verified()
}

// testPruneLate: a prune that was begun some time ago takes what was committed
// meanwhile for new: snapshots can be read, and IDs are known.
func testPruneLate(h *harness) {
	begun := time.Now()
	h.write(put("k", "1"))
	old := h.snapshot()
	c := &store.Commit{ID: newID(), Time: begun, Writes: []store.Write{put("k", "2")}}
	v, err := h.Commit(h.ctx(), c)
	h.must(err)
	h.write(put("k", "3"))
	h.must(h.Prune(h.ctx(), store.Prune{Now: begun}))
	h.has(old, "k", "1")
	again, err := h.Commit(h.ctx(), c)
	h.must(err)
	if again != v {
		h.Errorf("the commit was done again: version %d, and had %d", again, v)
	}
	if e := h.now("k"); string(e.Value) != "3" {
		h.Errorf("the commit was done again: %q", e.Value)
	}
}

// testPruneUnderLoad prunes as much as possible while others count: nothing is
// lost, and chains stay whole.
func testPruneUnderLoad(h *harness) {
	stop := make(chan struct{})
	var pruning, adding sync.WaitGroup
	pruning.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := h.Prune(h.ctx(), store.Prune{Now: time.Now().Add(2 * time.Hour), RecordBytes: 500}); err != nil {
				h.Error(err)
				return
			}
		}
	})
	var mu sync.Mutex
	total := 0
	for g := range 4 {
		adding.Go(func() {
			for i := range 25 {
				err := h.addPruned(fmt.Sprintf("%d-%d", g, i))
				if err != nil {
					h.Error(err)
					return
				}
				mu.Lock()
				total++
				mu.Unlock()
			}
		})
	}
	adding.Wait()
	close(stop)
	pruning.Wait()
	if e := h.now("pruned"); len(e.Value) != 8 || int(e.Value[7]) != total {
		h.Errorf("counted %v of %d", e.Value, total)
	}
	h.verified()
}

// addPruned is add where a snapshot may be pruned away at any time.
func (h *harness) addPruned(id string) error {
	for {
		if err := h.add(h.ctx(), id, "pruned"); !errors.Is(err, store.ErrGone) {
			return err
		}
	}
}
