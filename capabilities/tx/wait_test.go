package tx

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// held is a store that another process holds for ever.
type held struct{ store.Store }

func (held) Commit(ctx context.Context, _ *store.Commit) (store.Version, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// A commit, which nobody can cancel, does not wait for ever for others.
func TestHeldStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		keys := kv.NewOverlay(kv.Nothing(), kv.Options{Budget: &kv.Budget{Bytes: 99, Keys: 9}, Quota: store.Usage{Keys: 9, Bytes: 99}})
		r := Begin(Parts{Others: []Participant{Keys(keys)}, Store: held{s}}, volume.Options{})
		must(t, keys.Put(t.Context(), "k", []byte("v")))
		p, err := r.Prepare(t.Context())
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Commit(ctx, p, named("first")); !errors.Is(err, errWaited) {
			t.Errorf("got %v", err)
		}
	})
}
