package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

var errAway = errors.New("store is away")

// flaky is a store whose snapshots cannot be taken, or read, as long as it is so
// told.
type flaky struct {
	*memstore.Store
	taken, read bool // fail
}

func (f *flaky) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if f.taken {
		return nil, errAway
	}
	s, err := f.Store.Snapshot(ctx)
	return flakySnapshot{s, f}, err
}

type flakySnapshot struct {
	store.Snapshot
	store *flaky
}

func (f flakySnapshot) Get(ctx context.Context, keys ...store.Key) ([]store.Entry, error) {
	if f.store.read {
		return nil, errAway
	}
	return f.Snapshot.Get(ctx, keys...)
}

func (f flakySnapshot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	if f.store.read {
		return nil, errAway
	}
	return f.Snapshot.Scan(ctx, r, limit)
}

// A store that does not answer is a fault of the host, also where the guest takes
// it for an error of a file and says that all went well. Once it answers, calls go
// well again.
func TestStoreDoesNotAnswer(t *testing.T) {
	s := &flaky{Store: memstore.New()}
	p := mustLoad(t, engineOver(t, s), pack(writesAndSmiles(), tool.Command, writer), Binding{})
	for _, step := range []struct {
		taken, read bool
		want        Outcome
	}{{want: OK}, {taken: true, want: HostError}, {want: OK}, {read: true, want: HostError}, {want: OK}} {
		s.taken, s.read = step.taken, step.read
		r := p.Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != step.want || r.Outcome == HostError && (!errors.Is(r.Err, errAway) || r.Committed) {
			t.Errorf("%+v: %s, %v, committed %t", step, r.Outcome, r.Err, r.Committed)
		}
	}
}
