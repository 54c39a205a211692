package runtime

import (
	"context"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

// idleRun returns what runs an execution whose guest touches nothing, on so many
// managed volumes.
func idleRun(volumes int) func(testing.TB) {
	s, ctx := memstore.New(), context.Background()
	ledger := capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{})
	cpus := newProcessors(1)
	names := []string{"a", "b", "c", "d"}
	return func(t testing.TB) {
		w := world{store: s, reader: &lateSnapshot{store: s}, cpus: cpus, volumes: make([]tx.Volume, 0, volumes)}
		w.space = store.Space{Principal: LocalPrincipal, Package: "p", Area: kv.Area}
		w.sender = outbox.Sender{Principal: LocalPrincipal, Package: "p"}
		at := stored.At(w.reader)
		for _, name := range names[:volumes] {
			w.volumes = append(w.volumes, tx.Volume{Name: name, Path: "/" + name, Tree: stored.New(ctx, stored.Options{
				Reader: at, Blobs: w.reader, Space: stored.SpaceOf(LocalPrincipal, "p", name),
			})})
		}
		x := newExecution(ctx, w, ledger, tool.Limits{Writes: 1 << 20, Files: 10})
		x.serve(nil, nil)
		prepared, err := x.tx.Prepare(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if committed, _, err := x.commit(ctx, prepared, store.Commit{ID: "id"}); err != nil || !committed {
			t.Fatal(committed, err)
		}
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
		if w.reader.snap != nil {
			t.Fatal("the store was looked at")
		}
	}
}

// A call that touches nothing pays for no store, and next to nothing for volumes.
func TestIdleCostsNothing(t *testing.T) {
	const most, perVolume = 7, 6
	none, four := idleRun(0), idleRun(4)
	base := testing.AllocsPerRun(100, func() { none(t) })
	if base > most {
		t.Errorf("%v allocations of a call that touches nothing, at most %d are to be", base, most)
	}
	if each := (testing.AllocsPerRun(100, func() { four(t) }) - base) / 4; each > perVolume {
		t.Errorf("%v allocations for each volume, at most %d are to be", each, perVolume)
	}
}

// BenchmarkIdle measures what a call costs besides its guest.
func BenchmarkIdle(b *testing.B) {
	for name, volumes := range map[string]int{"no volume": 0, "four volumes": 4} {
		b.Run(name, func(b *testing.B) {
			run := idleRun(volumes)
			b.ReportAllocs()
			for b.Loop() {
				run(b)
			}
		})
	}
}
