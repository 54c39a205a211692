package tx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// park prepares a call and parks it.
func (p *site) park(t testing.TB, id string, expires time.Time, do func(r *run)) {
	t.Helper()
	r := p.call(t)
	do(r)
	prepared, err := r.Prepare(t.Context())
	must(t, err)
	parked := Parked{Prepared: prepared, With: withRecord(id), Note: json.RawMessage(`{"tool":"t"}`)}
	must(t, Park(t.Context(), p.store, someone, notes, parked, expires))
	must(t, r.Rollback())
}

// apply commits what was parked, as a process does that has not run the call.
func (p *site) apply(ctx context.Context, id string) error {
	parked, err := LoadParked(ctx, p.store, someone, notes, id)
	if err != nil {
		return err
	}
	r, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer r.Rollback()
	return r.Commit(ctx, parked.Prepared, parked.With)
}

// A parked commit has not happened. Another process applies it, with folders and
// all, once.
func TestParked(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		p.park(t, "1", time.Time{}, func(r *run) { r.leaves(t, "1") })
		isState(t, p, map[string]string{})
		p.clean(t)
		err := Park(t.Context(), s, someone, notes, Parked{Prepared: &Prepared{}, With: named("1")}, time.Time{})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("parked twice: %v", err)
		}
		other := siteAt(t, s, p.dirs...)
		for name, whose := range map[string][2]string{"principal": {"bob", notes}, "package": {someone, "other"}} {
			if _, err := LoadParked(t.Context(), s, whose[0], whose[1], "1"); !errors.Is(err, ErrNotParked) {
				t.Errorf("of another %s: %v", name, err)
			}
		}
		parked, err := LoadParked(t.Context(), s, someone, notes, "1")
		must(t, err)
		if string(parked.Note) != `{"tool":"t"}` || parked.With.ID != "1" || len(parked.Prepared.Effects) != 6 || parked.Prepared.Empty() {
			t.Errorf("parked %+v", parked)
		}
		must(t, other.apply(t.Context(), "1"))
		isState(t, p, after("1"))
		if got := p.state(t); got["idempotency 1"] != "result" || got["outbox example.org\x001"] == "" {
			t.Errorf("left %v", got)
		}
		if err := p.apply(t.Context(), "1"); !errors.Is(err, ErrNotParked) {
			t.Errorf("applied twice: %v", err)
		}
		if err := DropParked(t.Context(), s, someone, notes, "1", time.Now()); !errors.Is(err, ErrNotParked) {
			t.Errorf("dropped after that: %v", err)
		}
	})
}

// Of those who apply a parked commit at the same time none does it again, and it
// is either applied or dropped.
func TestParkedRaces(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 1)
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			p.park(t, id, time.Time{}, func(r *run) {
				_, err := r.keys.Increment(t.Context(), "n", 1)
				must(t, err)
				old, _ := r.cat(t, "f", "a")
				write(t, r.Overlay("f"), "a", old+"x")
			})
			before := p.state(t)
			var wg sync.WaitGroup
			var dropped error
			if id != "1" {
				wg.Go(func() { dropped = DropParked(context.Background(), s, someone, notes, id, time.Now()) })
			} else {
				dropped = ErrNotParked
			}
			applied := make([]error, 3)
			for i := range applied {
				other := siteAt(t, s, p.dirs...)
				wg.Go(func() { applied[i] = other.apply(context.Background(), id) })
			}
			wg.Wait()
			is := p.state(t)
			want := before["f a"] + "x"
			if dropped == nil {
				want = before["f a"]
			} else if !errors.Is(dropped, ErrNotParked) {
				t.Errorf("drop: %v", dropped)
			}
			if is["f a"] != want || (is["kv n"] == before["kv n"]) != (dropped == nil) {
				t.Errorf("%s: had %v, left %v, dropped %v, applied %v", id, before, is, dropped, applied)
			}
			for _, err := range applied {
				ok := err == nil && dropped != nil
				if !ok && !errors.Is(err, ErrNotParked) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, volume.ErrConflict) {
					t.Errorf("%s: dropped %v, applied %v", id, dropped, err)
				}
			}
		}
	})
}

// What was dropped, or has expired, is not applied, also not by who had it loaded;
// and its ID can be parked again.
func TestParkedEnds(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 1)
		soon := time.Now().Add(time.Second)
		for name, end := range map[string]func(id string){
			"dropped": func(id string) { must(t, DropParked(t.Context(), s, someone, notes, id, time.Now())) },
			"expired": func(string) { time.Sleep(time.Until(soon.Add(time.Millisecond))) },
		} {
			expires := map[string]time.Time{"expired": soon}[name]
			p.park(t, name, expires, func(r *run) { write(t, r.Overlay("f"), "a", "x"); write(t, r.Overlay("m"), "a", "x") })
			loaded, err := LoadParked(t.Context(), s, someone, notes, name)
			must(t, err)
			end(name)
			if err := p.apply(t.Context(), name); !errors.Is(err, ErrNotParked) {
				t.Errorf("%s: %v", name, err)
			}
			if err := p.call(t).Commit(t.Context(), loaded.Prepared, loaded.With); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s and loaded before: %v", name, err)
			}
			isState(t, p, map[string]string{})
			p.clean(t)
			p.park(t, name, time.Time{}, func(r *run) { must(t, r.keys.Put(t.Context(), "k", []byte("x"))) })
			must(t, DropParked(t.Context(), s, someone, notes, name, time.Now()))
			if _, err := LoadParked(t.Context(), s, someone, notes, name); !errors.Is(err, ErrNotParked) {
				t.Errorf("%s again: %v", name, err)
			}
		}
	})
}

// What changed since a call was prepared is a conflict when it is applied, and the
// parked commit stays: to be dropped, or for nothing.
func TestParkedConflict(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		for name, change := range map[string]func(r *run){
			"file":   func(r *run) { write(t, r.Overlay("m"), "a", "other") },
			"folder": func(r *run) { write(t, r.Overlay("f"), "a", "other") },
			"key":    func(r *run) { must(t, r.keys.Put(t.Context(), "k", []byte("other"))) },
		} {
			p := siteOf(t, s, 2)
			p.park(t, name, time.Time{}, func(r *run) { r.leaves(t, name) })
			r := p.call(t)
			change(r)
			must(t, r.commit(t.Context(), named("between "+name)))
			before := p.state(t)
			for range 2 {
				if err := p.apply(t.Context(), name); !errors.Is(err, store.ErrConflict) && !errors.Is(err, volume.ErrConflict) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if is := p.state(t); len(is) != len(before) || is["f a"] != before["f a"] || is["g a"] != before["g a"] {
				t.Errorf("%s: left %v, had %v", name, is, before)
			}
			p.clean(t)
			must(t, DropParked(t.Context(), s, someone, notes, name, time.Now()))
		}
	})
}

// A parked commit may be larger than a blob, and what it names is kept as long.
func TestParkedLarge(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 1)
		large := strings.Repeat("0123456789abcdef", store.MaxBlob/8)
		piece := bytes.Repeat([]byte("p"), 100)
		r := p.call(t)
		for _, vol := range []string{"m", "f"} {
			write(t, r.Overlay(vol), "a", large)
		}
		prepared, err := r.Prepare(t.Context())
		must(t, err)
		d, err := s.PutBlob(t.Context(), piece)
		must(t, err)
		with := withRecord("1")
		with.Writes[0].Blobs = []store.Digest{d, d}[:1]
		must(t, Park(t.Context(), s, someone, notes, Parked{Prepared: prepared, With: with}, time.Time{}))
		must(t, r.Rollback())
		must(t, s.Prune(t.Context(), store.Prune{Now: time.Now().Add(72 * time.Hour)}))
		must(t, siteAt(t, s, p.dirs...).apply(t.Context(), "1"))
		if is := p.state(t); is["m a"] != large || is["f a"] != large {
			t.Errorf("%d and %d bytes", len(is["m a"]), len(is["f a"]))
		}
		if got, err := s.Blob(t.Context(), d); err != nil || !bytes.Equal(got, piece) {
			t.Errorf("blob: %v", err)
		}
	})
}

// A link is put back by who prepared that, and by no one on the word of data.
func TestParkedLink(t *testing.T) {
	p := siteOf(t, stores["memory"](t), 1)
	r := p.call(t)
	o := r.Overlay("f")
	at, err := o.Walk(o.Root(), "l", false)
	must(t, err)
	must(t, o.Symlink(at, "elsewhere"))
	prepared, err := r.Prepare(t.Context())
	must(t, err)
	parked := Parked{Prepared: prepared, With: named("1")}
	if err := Park(t.Context(), p.store, someone, notes, parked, time.Time{}); !errors.Is(err, ErrUnparkable) {
		t.Errorf("parked: %v", err)
	}
	if err := Park(t.Context(), p.store, someone, notes, Parked{With: named("1")}, time.Time{}); !errors.Is(err, ErrNotPrepared) {
		t.Errorf("nothing parked: %v", err)
	}
	must(t, r.Commit(t.Context(), prepared, named("1")))
	if to, err := os.Readlink(filepath.Join(p.dirs[0], "l")); err != nil || to != "elsewhere" {
		t.Errorf("%q, %v", to, err)
	}
}

// A call whose parked commit cannot be put in place is applied all the same.
func TestParkedPending(t *testing.T) {
	p := siteOf(t, stores["sqlite"](t), 2)
	p.park(t, "1", time.Time{}, func(r *run) { r.leaves(t, "1") })
	other := siteAt(t, p.store, p.dirs...)
	other.folders[1].Store = stuck{other.folders[1].Store.(*volume.HostDir), nil, errDisk}
	if err := other.apply(t.Context(), "1"); !errors.Is(err, ErrPending) {
		t.Errorf("apply: %v", err)
	}
	if err := p.apply(t.Context(), "1"); !errors.Is(err, ErrNotParked) {
		t.Errorf("applied twice: %v", err)
	}
	isState(t, p, after("1"))
}

// table is a participant that is neither keys nor outbox: rows in the store.
type table struct {
	name string
	rows map[string]string
}

var tableSpace = store.Space{Principal: someone, Package: notes, Area: "table"}

func (x *table) Name() string { return x.name }

func (x *table) Effects() (reads, changes []capabilities.Effect) {
	for row := range x.rows {
		changes = append(changes, capabilities.Effect{Verb: capabilities.Create, Kind: capabilities.KindKey, Object: x.name + "/" + row})
	}
	return nil, changes
}

func (x *table) Prepare(context.Context) (Redo, error) { return &tableRedo{Rows: x.rows}, nil }

var errRow = errors.New("no row")

func (x *table) Decode(raw []byte) (Redo, error) {
	r := &tableRedo{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	if r.Rows[""] != "" {
		return nil, errRow
	}
	return r, nil
}

type tableRedo struct {
	Rows map[string]string `json:"rows"`
}

func (r *tableRedo) Empty() bool { return len(r.Rows) == 0 }

func (r *tableRedo) Enlist(_ context.Context, c *store.Commit) error {
	for row, value := range r.Rows {
		k := store.Key{Space: tableSpace, Name: row}
		c.Guards = append(c.Guards, store.Guard{Key: k})
		c.Writes = append(c.Writes, store.Write{Key: k, Value: []byte(value)})
	}
	return nil
}

// with returns a call that has one more participant.
func (p *site) with(t testing.TB, o Participant) *run {
	t.Helper()
	r := p.call(t)
	r.others = append(r.others, o)
	return r
}

// Whoever keeps to the contract takes part: it is prepared, parked, loaded and
// committed with all others, and judged.
func TestFurtherParticipant(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		r := p.with(t, &table{"table", map[string]string{"1": "one"}})
		r.leaves(t, "1")
		prepared, err := r.Prepare(t.Context())
		must(t, err)
		last := prepared.Effects[len(prepared.Effects)-1]
		if last.Object != "table/1" || prepared.Empty() {
			t.Errorf("effects %+v", prepared.Effects)
		}
		must(t, Park(t.Context(), s, someone, notes, Parked{Prepared: prepared, With: named("1")}, time.Time{}))
		must(t, r.Rollback())
		parked, err := LoadParked(t.Context(), s, someone, notes, "1")
		must(t, err)
		if err := p.call(t).Commit(t.Context(), parked.Prepared, parked.With); !errors.Is(err, ErrVolumes) {
			t.Errorf("without the participant: %v", err)
		}
		isState(t, p, map[string]string{})
		must(t, siteAt(t, s, p.dirs...).with(t, &table{name: "table"}).Commit(t.Context(), parked.Prepared, parked.With))
		isState(t, p, after("1"))
		now, err := s.Snapshot(t.Context())
		must(t, err)
		rows, err := now.Get(t.Context(), store.Key{Space: tableSpace, Name: "1"})
		if err != nil || string(rows[0].Value) != "one" {
			t.Errorf("row %+v, %v", rows, err)
		}
		second := p.with(t, &table{"table", map[string]string{"1": "two"}})
		must(t, second.keys.Put(t.Context(), "k", []byte("2")))
		if err := second.commit(t.Context(), named("2")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the row is there: %v", err)
		}
		isState(t, p, after("1"))
	})
}

// What is prepared is the same after it was encoded, as far as anybody can tell.
func TestPreparedRoundTrip(t *testing.T) {
	p := siteOf(t, stores["memory"](t), 2)
	r := p.with(t, &table{"table", map[string]string{"1": "one"}})
	r.leaves(t, "1")
	_, err := r.keys.Scan(t.Context(), "a", "z", 10)
	must(t, err)
	prepared, err := r.Prepare(t.Context())
	must(t, err)
	text, err := json.Marshal(prepared)
	must(t, err)
	var decoded Prepared
	must(t, json.Unmarshal(text, &decoded))
	again, err := json.Marshal(&decoded)
	must(t, err)
	if !bytes.Equal(text, again) {
		t.Errorf("encoded\n%s\nand again\n%s", text, again)
	}
	must(t, decoded.decode(r.others))
	again, err = json.Marshal(&decoded)
	must(t, err)
	if !bytes.Equal(text, again) {
		t.Errorf("encoded\n%s\nand after it was read\n%s", text, again)
	}
}

// What no participant of the transaction made, or can read, or what is for the
// keys of others, changes nothing.
func TestForeignPrepared(t *testing.T) {
	const write = `{"writes":[{"principal":"bob","package":"notes","area":"kv","name":"k","value":"eA=="}]}`
	const guard = `{"guards":[{"principal":"alice","package":"notes","area":"idempotency","name":"k","version":0}]}`
	const ranges = `{"ranges":[{"principal":"bob","package":"notes","area":"kv","digest":""}]}`
	p := siteOf(t, stores["memory"](t), 1)
	for text, want := range map[string]error{
		`{"others":{"sql":{}}}`:                     ErrVolumes,
		`{"others":{"sql":null}}`:                   ErrVolumes,
		`{"others":{"keys":null}}`:                  ErrVolumes,
		`{"others":{"keys":` + write + `}}`:         ErrVolumes,
		`{"others":{"outbox":` + write + `}}`:       ErrVolumes,
		`{"others":{"keys":` + guard + `}}`:         ErrVolumes,
		`{"others":{"keys":` + ranges + `}}`:        ErrVolumes,
		`{"others":{"keys":[]}}`:                    nil,
		`{"others":{"table":{"rows":{"":"x"}}}}`:    errRow,
		`{"changes":{"m":null}}`:                    ErrVolumes,
		`{"changes":{"x":{}}}`:                      ErrVolumes,
		`{"changes":{"m":{"steps":[{}]}}}`:          capabilities.EINVAL,
		`{"changes":{"f":{"steps":[{}]}}}`:          capabilities.EINVAL,
		`{"changes":{"f":{},"m":{},"x":{}}}`:        ErrVolumes,
		`{"others":{"keys":{},"messages":{}}}`:      ErrVolumes,
		`{"others":{"keys":{},"table":{"rows":7}}}`: nil,
	} {
		var prepared Prepared
		must(t, json.Unmarshal([]byte(text), &prepared))
		if prepared.Empty() && text[2] == 'o' {
			t.Errorf("%s: it is said to change nothing", text)
		}
		err := p.with(t, &table{name: "table"}).Commit(t.Context(), &prepared, named("1"))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if n := p.store.counted(); n != 0 {
		t.Errorf("%d commits", n)
	}
}
