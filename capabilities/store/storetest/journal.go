package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// records reads the journal from the start until it has as many records as
// there should be, a few at a time.
func (h *harness) records(want int) []store.Logged {
	h.Helper()
	var out []store.Logged
	seen := map[store.Cursor]bool{}
	enough := h.eventually(func() bool {
		for {
			var after store.Cursor
			if len(out) > 0 {
				after = out[len(out)-1].Cursor
			}
			page, err := h.Records(h.ctx(), after, 7)
			h.must(err)
			if len(page) > 7 {
				h.Fatalf("%d records, and at most 7 were asked for", len(page))
			}
			for _, l := range page {
				if seen[l.Cursor] || l.Cursor == "" {
					h.Fatalf("cursor %q twice", l.Cursor)
				}
				seen[l.Cursor] = true
			}
			out = append(out, page...)
			if len(page) == 0 {
				return len(out) >= want
			}
		}
	})
	if !enough || len(out) != want {
		h.Fatalf("the journal has %d records, want %d", len(out), want)
	}
	return out
}

// verified checks all chains as a reader who trusts nothing does.
func (h *harness) verified() {
	h.Helper()
	heads, err := h.Heads(h.ctx())
	h.must(err)
	want := map[string]store.Head{}
	total := 0
	for _, head := range heads {
		if _, twice := want[head.Writer]; twice {
			h.Errorf("writer %q has two heads", head.Writer)
		}
		want[head.Writer] = head
		total += int(head.N - head.First + 1)
	}
	at := map[string]store.Head{} // N and Hash: where the chain is
	for _, head := range heads {
		at[head.Writer] = store.Head{N: head.First - 1, Hash: head.Prev}
	}
	for _, l := range h.records(total) {
		a, ok := at[l.Writer]
		if !ok {
			h.Fatalf("writer %q has no head", l.Writer)
		}
		if l.N != a.N+1 || l.Prev != a.Hash || l.Hash != store.ChainHash(a.Hash, l.Writer, l.N, l.Record) {
			h.Fatalf("record %d of %q does not follow %d:\n%+v", l.N, l.Writer, a.N, l)
		}
		at[l.Writer] = store.Head{N: l.N, Hash: l.Hash}
	}
	for writer, a := range at {
		if w := want[writer]; a.N != w.N || a.Hash != w.Hash {
			h.Errorf("chain of %q ends at %d %v, and should at %d %v", writer, a.N, a.Hash, w.N, w.Hash)
		}
	}
}

func testJournal(h *harness) {
	heads, err := h.Heads(h.ctx())
	if err != nil || slices.ContainsFunc(heads, func(head store.Head) bool { return head.N != 0 }) {
		h.Errorf("heads of an empty journal: %v, %v", heads, err)
	}
	h.records(0)
	h.must(h.Append(h.ctx()))
	at := time.Date(2031, 2, 3, 4, 5, 6, 789012345, time.FixedZone("somewhere", 3600))
	h.must(h.Append(h.ctx(), store.Record{Time: at, Data: []byte(`{"a":"` + "\\u0000é" + `"}`)}))
	h.must(h.Append(h.ctx(), store.Record{Time: at.Add(time.Nanosecond), Data: []byte(`{ "b" :2, "b": 1.0 }`)}, store.Record{Time: at.Add(-time.Hour), Data: []byte(`3`)}))
	got := h.records(3)
	for i, want := range []store.Record{
		{Time: at, Data: []byte(`{"a":"` + "\\u0000é" + `"}`)},
		{Time: at.Add(time.Nanosecond), Data: []byte(`{ "b" :2, "b": 1.0 }`)},
		{Time: at.Add(-time.Hour), Data: []byte(`3`)},
	} {
		if l := got[i]; !l.Time.Equal(want.Time) || string(l.Data) != string(want.Data) {
			h.Errorf("record %d: %v %s, want %v %s", i, l.Time, l.Data, want.Time, want.Data)
		}
	}
	h.verified()
	if page, err := h.Records(h.ctx(), got[2].Cursor, 10); err != nil || len(page) != 0 {
		h.Errorf("after the last: %v, %v", page, err)
	}
	if page, err := h.Records(h.ctx(), got[0].Cursor, 1); err != nil || len(page) != 1 || page[0].Cursor != got[1].Cursor {
		h.Errorf("after the first: %v, %v", page, err)
	}
	if page, err := h.Records(h.ctx(), "", 0); err != nil || len(page) != 0 {
		h.Errorf("no records were asked for: %v, %v", page, err)
	}
	for _, bad := range []store.Cursor{"x", "-1", " 1", "1 ", "99999999999999999999999999", "\x00", "1;drop"} {
		if page, err := h.Records(h.ctx(), bad, 10); err == nil {
			h.Errorf("cursor %q is none of this journal, and has %v", bad, page)
		}
	}
}

func testJournalOfCommits(h *harness) {
	data := func(i int) []store.Record {
		return []store.Record{
			{Time: time.Now(), Data: fmt.Appendf(nil, `{"first of":%d}`, i)}, {Time: time.Now(), Data: fmt.Appendf(nil, `{"second of":%d}`, i)},
		}
	}
	h.write(put("k", "0"))
	for i := range 10 {
		c := commitOf(put("k", fmt.Sprint(i)))
		c.Records = data(i)
		v := h.commit(c)
		stale := commitOf(put("k", "stale"))
		stale.Guards = []store.Guard{{Key: key("k"), Version: v - 1}}
		stale.Records = data(100 + i)
		h.conflicts(stale, "stale")
		h.must(h.Append(h.ctx(), data(200+i)...))
	}
	var got []string
	for _, l := range h.records(40) {
		got = append(got, string(l.Data))
	}
	var want []string
	for i := range 10 {
		for _, r := range append(data(i), data(200+i)...) {
			want = append(want, string(r.Data))
		}
	}
	if !slices.Equal(got, want) {
		h.Errorf("journal:\n%q\nwant\n%q", got, want)
	}
	h.verified()
}

func testJournalReaders(h *harness) { journalReaders(h, h) }

// journalReaders reads from both sides while both write: nothing is skipped and
// nothing comes twice.
func journalReaders(a, b *harness) {
	const writers, each = 8, 25
	stop := make(chan struct{})
	var reading, writing sync.WaitGroup
	type found struct {
		mu      sync.Mutex
		records map[string]int
	}
	var start store.Cursor
	for {
		page, err := a.Records(a.ctx(), start, 100)
		a.must(err)
		if len(page) == 0 {
			break
		}
		start = page[len(page)-1].Cursor
	}
	results := []*found{{records: map[string]int{}}, {records: map[string]int{}}, {records: map[string]int{}}}
	for i, f := range results {
		h := []*harness{a, b}[i%2]
		reading.Go(func() {
			after := start
			last := map[string]uint64{}
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				page, err := h.Records(h.ctx(), after, 1+i*5)
				if err != nil {
					h.Error(err)
					return
				}
				for _, l := range page {
					if l.N <= last[l.Writer] {
						h.Errorf("record %d of %q came after %d", l.N, l.Writer, last[l.Writer])
					}
					last[l.Writer] = l.N
					f.mu.Lock()
					f.records[string(l.Data)]++
					f.mu.Unlock()
					after = l.Cursor
				}
				if len(page) > 0 {
					continue
				}
				select {
				case <-stop:
					if len(f.records) >= writers*each {
						return
					}
				default:
				}
			}
		})
	}
	for w := range writers {
		h := []*harness{a, b}[w%2]
		writing.Go(func() {
			for i := range each {
				if err := h.log(w, i); err != nil {
					h.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	for i, f := range results {
		if len(f.records) != writers*each || slices.Max(slices.Collect(maps.Values(f.records))) != 1 {
			a.Errorf("reader %d saw %d records of %d, %v", i, len(f.records), writers*each, f.records)
		}
	}
	a.verified()
}

// log writes a record by a commit, by a commit that has to be tried again, or
// by itself.
func (h *harness) log(w, i int) error {
	r := store.Record{Time: time.Now(), Data: fmt.Appendf(nil, `{"writer":%d,"i":%d}`, w, i)}
	switch i % 3 {
	case 0:
		return h.Append(h.ctx(), r)
	case 1:
		c := commitOf(put(fmt.Sprint("log ", w), "v"))
		c.Records = []store.Record{r}
		_, err := h.Commit(h.ctx(), c)
		return err
	default:
		c := commitOf(put("log", "v"))
		c.Records = []store.Record{r}
		for {
			s, err := h.Store.Snapshot(h.ctx())
			if err != nil {
				return err
			}
			es, err := s.Get(h.ctx(), key("log"))
			if err != nil {
				return err
			}
			c.Guards = []store.Guard{{Key: key("log"), Version: es[0].Version}}
			if _, err = h.Commit(h.ctx(), c); !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
}
