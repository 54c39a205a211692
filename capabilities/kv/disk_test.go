package kv

import (
	"errors"
	"maps"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
)

// The names and guards of keys mean to a store on the disk what they mean here.
func TestOnDisk(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	want := map[string]string{"a": "1", "a\x00": "2", "é": "3", "\xff": "4", "\xff\xff": "5"}
	first := begin(t, s, roomy())
	for k, v := range want {
		must(t, first.Put(t.Context(), k, []byte(v)))
	}
	must(t, commit(t, s, first))
	if got := held(t, base(t, s)); !maps.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	u, err := s.Usage(t.Context(), space)
	must(t, err)
	if mine, err := first.Usage(t.Context()); err != nil || mine != u {
		t.Errorf("the overlay counts %+v, the store %+v, %v", mine, u, err)
	}
	scan := begin(t, s, roomy())
	list, err := scan.Scan(t.Context(), "a", "\xff\xff", 3)
	must(t, err)
	if got := shown(list); got != `"a"="1" "a\x00"="2" "é"="3" ` {
		t.Errorf("got %s", got)
	}
	must(t, scan.Delete(t.Context(), "a"))
	other := begin(t, s, roomy())
	must(t, other.Put(t.Context(), "\xff", []byte("behind the last")))
	must(t, commit(t, s, other))
	must(t, commit(t, s, scan))

	scan = begin(t, s, roomy())
	_, err = scan.Scan(t.Context(), "a", "\xff\xff", 9)
	must(t, err)
	other = begin(t, s, roomy())
	must(t, other.Put(t.Context(), "\xfe", []byte("within")))
	must(t, commit(t, s, other))
	if err := commit(t, s, scan); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
