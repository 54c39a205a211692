package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

var space = store.Space{Principal: "local", Package: "notes", Area: Area}

var errBroken = errors.New("broken")

// roomy are options that refuse nothing a test does.
func roomy() Options {
	return Options{
		Space:  space,
		Budget: &Budget{Bytes: 1 << 30, Keys: 1 << 20},
		Quota:  store.Usage{Keys: 1 << 20, Bytes: 1 << 30},
	}
}

// fill commits values to a new store; "" deletes a key.
func fill(t testing.TB, values map[string]string) *memstore.Store {
	t.Helper()
	s := memstore.New()
	save(t, s, values)
	return s
}

func save(t testing.TB, s store.Store, values map[string]string) {
	t.Helper()
	c := &store.Commit{ID: fmt.Sprint(values, len(t.Name()), next())}
	for k, v := range values {
		c.Writes = append(c.Writes, store.Write{
			Key: store.Key{Space: space, Name: StoreName(k)}, Value: []byte(v), Delete: v == "",
		})
	}
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

var commits int

func next() int { commits++; return commits }

func begin(t testing.TB, s store.Store, o Options) *Overlay {
	t.Helper()
	return NewOverlay(base(t, s), o)
}

func base(t testing.TB, s store.Store) Base {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	return Stored(snap, space)
}

// commit does the change of an overlay, as the transaction of a call would.
func commit(t testing.TB, s store.Store, o *Overlay) error {
	t.Helper()
	c, err := o.Change()
	must(t, err)
	_, err = s.Commit(t.Context(), &store.Commit{
		ID: fmt.Sprint("call", next()), Guards: c.Guards, Ranges: c.Ranges, Writes: c.Writes,
	})
	return err
}

// held returns all that a base has.
func held(t testing.TB, b Base) map[string]string {
	t.Helper()
	list, err := b.Scan(t.Context(), "", "", 1<<20)
	must(t, err)
	m := map[string]string{}
	for _, e := range list {
		m[e.Key] = string(e.Value)
	}
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// broken is a base that cannot be read.
type broken struct{}

func (broken) Get(context.Context, string) ([]byte, store.Version, bool, error) {
	return nil, 0, false, errBroken
}

func (broken) Scan(context.Context, string, string, int) ([]Entry, error) { return nil, errBroken }

// meter tells what one space takes.
type meter func(context.Context) (store.Usage, error)

func (m meter) Usage(ctx context.Context, _ store.Space) (store.Usage, error) { return m(ctx) }
