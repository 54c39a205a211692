package outbox

import (
	"bytes"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

func record(state State) Record {
	return Record{
		Message: message("k"), Bytes: 2, CallID: "c", Tool: "t", State: state, Created: noon(), Next: noon(),
		Lease: &Lease{Owner: "me", Expires: noon().Add(time.Minute)},
	}
}

// FuzzDecode: a record or an error, and what was read is written the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []State{StatePending, StateDelivered, StateGivenUp, "lost"} {
		b, err := record(s).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			if r.State != "" || r.Message.Host != "" {
				t.Errorf("error %v and %+v", err, r)
			}
			return
		}
		one, err := r.Encode()
		if err != nil {
			t.Skip(err) // a time that JSON cannot carry
		}
		again, err := Decode(one)
		if err != nil {
			t.Fatal(err)
		}
		two, err := again.Encode()
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s became %s, %v", one, two, err)
		}
	})
}

func FuzzQueued(f *testing.F) {
	f.Add("\x00h\x00k", "2026-01-02T12:00:00Z")
	f.Add("h\x00k", "2026-01-02T12:00:00Z")
	f.Fuzz(func(t *testing.T, name, value string) {
		q, err := queued(store.Entry{Key: store.Key{Name: name}, Value: []byte(value)})
		if err != nil && q != (Queued{}) {
			t.Errorf("error %v and %+v", err, q)
		}
		if err == nil && queueKey(store.Space{}, q.Host, q.Key).Name != name {
			t.Errorf("%q was taken for %+v", name, q)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for _, s := range []string{
		``, `{}`, `[]`, `{"version":2,"state":"pending","message":{"host":"h","method":"PUT","path":"/","key":"k"}}`,
		`{"version":1,"state":"","message":{"host":"h","method":"PUT","path":"/","key":"k"}}`,
		`{"version":1,"state":"pending","message":{"host":"h","method":"PUT","path":"/","key":""}}`,
		`{"version":1,"state":"pending","message":{"host":"h","method":"GET","path":"/","key":"k"}}`,
	} {
		if r, err := Decode([]byte(s)); err == nil {
			t.Errorf("%s: %+v", s, r)
		}
	}
}

func queueOf(t *testing.T, s store.Store, space store.Space) (list []Queued) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	must(t, Queue(t.Context(), snap, space, func(q Queued) bool {
		list = append(list, q)
		return true
	}))
	return list
}

// A final record is in no queue, and its key is known until it expires.
func TestFinalRecord(t *testing.T) {
	s, space := memstore.New(), call.Space()
	save := func(id string, r Record) {
		t.Helper()
		writes, err := r.Writes(space)
		must(t, err)
		_, err = s.Commit(t.Context(), &store.Commit{ID: id, Writes: writes})
		must(t, err)
	}
	r := record(StatePending)
	save("1", r)
	if q := queueOf(t, s, space); len(q) != 1 {
		t.Errorf("queue %v", q)
	}
	r.State, r.Expires = StateDelivered, time.Now().Add(time.Hour)
	save("2", r)
	list, err := List(t.Context(), s, 9)
	must(t, err)
	if q := queueOf(t, s, space); len(q) != 0 || len(list) != 1 || list[0].State != StateDelivered {
		t.Errorf("queue %v, list %v", q, list)
	}
	b := begin(t, s, roomy(open))
	must(t, b.Send(t.Context(), message("k")))
	if len(b.Effects()) != 0 {
		t.Error("sent again")
	}
	r.Expires = time.Now().Add(-time.Second)
	save("3", r)
	b = begin(t, s, roomy(open))
	must(t, b.Send(t.Context(), message("k")))
	if len(b.Effects()) != 1 {
		t.Error("not sent though it is forgotten")
	}
	must(t, commit(t, s, b))
}

func TestDue(t *testing.T) {
	r := record(StatePending)
	if d := r.Due(); !d.Equal(noon().Add(time.Minute)) {
		t.Errorf("leased: %v", d)
	}
	r.Next = noon().Add(time.Hour)
	if d := r.Due(); !d.Equal(r.Next) {
		t.Errorf("later: %v", d)
	}
	r.Lease = nil
	if d := r.Due(); !d.Equal(r.Next) {
		t.Errorf("free: %v", d)
	}
}
