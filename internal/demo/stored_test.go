package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// Keys, files of managed volumes and messages are seen to come, change and go;
// what the host keeps beside them is not, nor how far a message is.
func TestStoredIsCompared(t *testing.T) {
	st := memstore.New()
	keys := store.Space{Principal: "local", Package: "p", Area: kv.Area}
	files := stored.SpaceOf("local", "p", "data")
	queue := outbox.Sender{Principal: "local", Package: "p"}.Space()
	message := outbox.Record{
		Message: outbox.Message{Host: "h.example", Method: "POST", Path: "/", Key: "k"},
		CallID:  "c", State: outbox.StatePending, Created: time.Now(), Next: time.Now(),
	}
	commit := func(id string, ws ...store.Write) {
		t.Helper()
		if _, err := st.Commit(t.Context(), &store.Commit{ID: id, Time: time.Now(), Writes: ws}); err != nil {
			t.Fatal(err)
		}
	}
	put := func(s store.Space, name, value string) store.Write {
		return store.Write{Key: store.Key{Space: s, Name: name}, Value: []byte(value)}
	}
	writes := func(r outbox.Record) []store.Write {
		t.Helper()
		ws, err := r.Writes(queue)
		if err != nil {
			t.Fatal(err)
		}
		return ws
	}
	take := func() snapshot {
		t.Helper()
		s := snapshot{}
		if err := s.addStored(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		return s
	}
	many := []store.Write{}
	for i := range 1500 {
		many = append(many, put(keys, "many/"+string(rune('a'+i%26))+string(rune(0x100+i)), ""))
	}
	commit("1", append(many, put(keys, "same", "1"), put(keys, "value", "1"), put(keys, "gone", "1"))...)
	before := take()
	if len(before) != 1503 {
		t.Errorf("%d keys", len(before))
	}
	if d := before.diff(take()); len(d) != 0 {
		t.Errorf("nothing changed: %v", d)
	}
	commit("2", append(writes(message),
		put(keys, "value", "2"), put(keys, "new", "1"), store.Write{Key: store.Key{Space: keys, Name: "gone"}, Delete: true},
		put(files, "a\x00b.txt", "x"),
		put(store.Space{Principal: "local", Package: "p", Area: store.AreaUndo}, "c", "x"))...)
	queued := take()
	want := []string{"-p/key gone", "+p/key new", "~p/key value", "+p/message to h.example k", "+p/volume data a/b.txt"}
	if d := before.diff(queued); !slices.Equal(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
	message.State, message.Done = outbox.StateDelivered, time.Now()
	commit("3", writes(message)...)
	if d := queued.diff(take()); len(d) != 0 {
		t.Errorf("delivered: %v", d)
	}
}
