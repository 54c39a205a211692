package undo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// today is later than the store's clock minus the retention, so that nothing has
// expired.
var today = time.Now().UTC().Truncate(time.Second)

// calls commits records of calls that are a minute apart, oldest first.
func calls(t *testing.T, s store.Store, records ...*Record) {
	t.Helper()
	for i, r := range records {
		r.CallID, r.Principal, r.Package = fmt.Sprintf("call-%d", i), "local", "notes"
		r.Time = today.Add(time.Duration(i-len(records)) * time.Minute)
		w, err := r.Writes(0)
		must(t, err)
		_, err = s.Commit(t.Context(), &store.Commit{ID: r.CallID, Writes: w})
		must(t, err)
	}
}

func snapshot(t *testing.T, s store.Store) store.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	return snap
}

func ids(list []*Kept) []string {
	var out []string
	for _, k := range list {
		out = append(out, k.CallID)
	}
	return out
}

var notes = Space("local", "notes")

func TestFindAndRecent(t *testing.T) {
	s := memstore.New()
	calls(t, s, &Record{Tool: "a"}, &Record{Tool: "b"}, &Record{Tool: "c"})
	snap := snapshot(t, s)
	list, err := Recent(t.Context(), snap, notes, 2)
	if err != nil || !slices.Equal(ids(list), []string{"call-2", "call-1"}) {
		t.Errorf("recent: %q, %v", ids(list), err)
	}
	k, err := Find(t.Context(), snap, "local", "call-1")
	if err != nil || k.Tool != "b" || !k.Expires.Equal(k.Time.Add(DefaultRetention)) {
		t.Errorf("find: %+v, %v", k, err)
	}
	for _, c := range [][2]string{{"local", "call-9"}, {"other", "call-1"}, {"local", ""}, {"local", strings.Repeat("x", 9000)}, {"local", "\xff"}} {
		if _, err := Find(t.Context(), snap, c[0], c[1]); !errors.Is(err, ErrNotFound) {
			t.Errorf("find %.20q: %v", c, err)
		}
	}
}

func TestWritesKeep(t *testing.T) {
	r := &Record{CallID: "c", Principal: "p", Package: "k", Time: when, Keys: []Key{{
		Name: "k", Left: State{Kind: Absent},
		Was: State{Kind: Value, Size: 3, Content: &Content{Chunk: 2, Chunks: []Chunk{{Blob: store.Digest{1}}, {Blob: store.Digest{2}}}}},
	}}}
	for name, c := range map[string]struct {
		hold time.Time
		want time.Time
	}{
		"not held": {time.Time{}, when.Add(time.Hour)}, "held shorter": {when, when.Add(time.Hour)},
		"held": {when.Add(30 * 24 * time.Hour), when.Add(30 * 24 * time.Hour)},
	} {
		r.HoldUntil = c.hold
		w, err := r.Writes(time.Hour)
		must(t, err)
		if len(w) != 2 || !w[0].Expires.Equal(c.want) || !w[1].Expires.Equal(c.want) {
			t.Errorf("%s: %v", name, w)
		}
		if !slices.Equal(w[0].Blobs, []store.Digest{{1}, {2}}) {
			t.Errorf("%s: blobs %v", name, w[0].Blobs)
		}
	}
	for name, bad := range map[string]*Record{
		"no id": {Principal: "p", Package: "k", Time: when}, "no time": {CallID: "c", Principal: "p", Package: "k"},
		"early": {CallID: "c", Principal: "p", Package: "k", Time: time.Unix(-5, 0).UTC()},
	} {
		if _, err := bad.Writes(0); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of two that take back a call at the same time one is committed.
func TestMark(t *testing.T) {
	s := memstore.New()
	calls(t, s, &Record{})
	mark := func(k *Kept, by string) error {
		w, err := k.Mark(by)
		must(t, err)
		_, err = s.Commit(t.Context(), &store.Commit{ID: "undo-" + by, Guards: []store.Guard{k.Guard}, Writes: []store.Write{w}})
		return err
	}
	find := func() *Kept {
		k, err := Find(t.Context(), snapshot(t, s), "local", "call-0")
		must(t, err)
		return k
	}
	k := find()
	must(t, mark(k, "u1"))
	if err := mark(k, "u2"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("second: %v", err)
	}
	again := find()
	if again.UndoneBy != "u1" || !again.Expires.Equal(k.Expires) || k.UndoneBy != "" {
		t.Errorf("%+v", again.Record)
	}
	if err := Restore(t.Context(), again.Record, Where{}); !errors.Is(err, ErrUndone) {
		t.Errorf("restore: %v", err)
	}
	must(t, mark(again, ""))
	if now := find(); now.UndoneBy != "" {
		t.Errorf("undone by %q", now.UndoneBy)
	}
}

func TestTrim(t *testing.T) {
	hold := today.Add(time.Hour)
	sized := func() []*Record {
		return []*Record{{Size: 1000}, {Size: 1000, HoldUntil: hold}, {Size: 1000, HoldUntil: today}, {Size: 1000}, {Size: 1000}}
	}
	for name, c := range map[string]struct {
		max  int64
		want []string
	}{
		"room":    {10_000, []string{"call-4", "call-3", "call-2", "call-1", "call-0"}},
		"two":     {3000, []string{"call-4", "call-3", "call-1"}},
		"nothing": {0, []string{"call-1"}},
	} {
		s := memstore.New()
		calls(t, s, sized()...)
		n, err := Trim(t.Context(), s, notes, c.max, today)
		must(t, err)
		list, err := Recent(t.Context(), snapshot(t, s), notes, 10)
		if err != nil || !slices.Equal(ids(list), c.want) || n != 5-len(c.want) {
			t.Errorf("%s: %d removed, left %q, %v", name, n, ids(list), err)
		}
		for i := range 5 {
			id := fmt.Sprintf("call-%d", i)
			_, err := Find(t.Context(), snapshot(t, s), "local", id)
			if kept := slices.Contains(c.want, id); kept != (err == nil) || (!kept && !errors.Is(err, ErrNotFound)) {
				t.Errorf("%s: find %s: %v", name, id, err)
			}
		}
		if u, err := s.Usage(t.Context(), Space("local", indexPackage)); err != nil || int(u.Keys) != len(c.want) {
			t.Errorf("%s: %d entries of the index, %v", name, u.Keys, err)
		}
	}
}

// A small record does not outlive a newer one.
func TestTrimOldestFirst(t *testing.T) {
	s := memstore.New()
	calls(t, s, &Record{}, &Record{Size: 5000}, &Record{Size: 1000})
	n, err := Trim(t.Context(), s, notes, 3000, today)
	must(t, err)
	list, err := Recent(t.Context(), snapshot(t, s), notes, 10)
	if err != nil || n != 2 || !slices.Equal(ids(list), []string{"call-2"}) {
		t.Errorf("%d removed, left %q, %v", n, ids(list), err)
	}
}

// Trimming goes on over pages, and past what others do meanwhile.
func TestTrimPages(t *testing.T) {
	s := memstore.New()
	many := make([]*Record, 3*trimPage)
	for i := range many {
		many[i] = &Record{Size: 1000}
	}
	calls(t, s, many...)
	racing := &racingStore{Store: s, on: func() {
		k, err := Find(t.Context(), snapshot(t, s), "local", "call-0")
		must(t, err)
		w, err := k.Mark("u")
		must(t, err)
		_, err = s.Commit(t.Context(), &store.Commit{ID: "mark", Writes: []store.Write{w}})
		must(t, err)
	}}
	n, err := Trim(t.Context(), racing, notes, 0, today)
	if err != nil || n != len(many) || racing.conflicts == 0 {
		t.Errorf("%d removed, %d conflicts, %v", n, racing.conflicts, err)
	}
	list, err := Recent(t.Context(), snapshot(t, s), notes, 10)
	if err != nil || len(list) > 0 {
		t.Errorf("left: %q, %v", ids(list), err)
	}
}

// racingStore lets somebody in before the commit that deletes the oldest.
type racingStore struct {
	store.Store
	on        func()
	conflicts int
}

func (r *racingStore) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	if on := r.on; on != nil && slices.ContainsFunc(c.Writes, func(w store.Write) bool { return w.Name == "call-0" }) {
		r.on = nil
		on()
	}
	v, err := r.Store.Commit(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		r.conflicts++
	}
	return v, err
}

// What cannot be read hides nothing else, and is not thrown away.
func TestUnreadableRecord(t *testing.T) {
	s := memstore.New()
	calls(t, s, &Record{}, &Record{})
	odd := store.Key{Space: notes, Name: "0000000000000000/odd"}
	_, err := s.Commit(t.Context(), &store.Commit{ID: "odd", Writes: []store.Write{{Key: odd, Value: []byte(`{"format":2}`)}}})
	must(t, err)
	list, err := Recent(t.Context(), snapshot(t, s), notes, 10)
	if !errors.Is(err, ErrInvalid) || !slices.Equal(ids(list), []string{"call-1", "call-0"}) {
		t.Errorf("recent: %q, %v", ids(list), err)
	}
	if n, err := Trim(t.Context(), s, notes, 0, today); n != 2 || err != nil {
		t.Errorf("trim: %d, %v", n, err)
	}
	if e, err := snapshot(t, s).Get(t.Context(), odd); err != nil || e[0].Version == 0 {
		t.Errorf("odd record: %v, %v", e, err)
	}
}

// A record that is copied to another place is not that call's.
func TestMisplacedRecord(t *testing.T) {
	s := memstore.New()
	calls(t, s, &Record{}, &Record{})
	snap := snapshot(t, s)
	k, err := Find(t.Context(), snap, "local", "call-0")
	must(t, err)
	other, err := Find(t.Context(), snap, "local", "call-1")
	must(t, err)
	value, err := k.Encode()
	must(t, err)
	_, err = s.Commit(t.Context(), &store.Commit{ID: "x", Writes: []store.Write{{Key: other.Guard.Key, Value: value}}})
	must(t, err)
	if _, err := Find(t.Context(), snapshot(t, s), "local", "call-1"); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
	elsewhere := store.Key{Space: Space("local", "other"), Name: k.Guard.Name}
	_, err = s.Commit(t.Context(), &store.Commit{ID: "y", Writes: []store.Write{{Key: elsewhere, Value: value}}})
	must(t, err)
	if list, err := Recent(t.Context(), snapshot(t, s), elsewhere.Space, 9); !errors.Is(err, ErrInvalid) || len(list) > 0 {
		t.Errorf("other package: %q, %v", ids(list), err)
	}
}
