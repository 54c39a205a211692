package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pruned counts the prunes of a store.
type pruned struct {
	*memstore.Store
	times *atomic.Int32
}

func (p pruned) Prune(_ context.Context, o store.Prune) error {
	if a := config.Default().Audit; o.Now.IsZero() || o.Records != a.Keep || o.RecordBytes != a.MaxSize {
		return fmt.Errorf("prune %+v: not what is configured", o)
	}
	p.times.Add(1)
	return nil
}

// Of several processes one does the upkeep, and again when it is due.
func TestUpkeepIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pruned{memstore.New(), &atomic.Int32{}}
		round := func() int32 {
			before := s.times.Load()
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if _, err := newUpkeep(s, config.Default()).do(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return s.times.Load() - before
		}
		for _, step := range []struct {
			wait time.Duration
			want int32
		}{{0, 1}, {upkeepEvery - time.Second, 0}, {2 * time.Second, 1}, {time.Second, 0}, {30 * 24 * time.Hour, 1}} {
			time.Sleep(step.wait)
			if got := round(); got != step.want {
				t.Errorf("after %v: done %d times, want %d", step.wait, got, step.want)
			}
		}
	})
}

// A clock that was wrong, or a value that cannot be read, does not keep the upkeep
// from being done.
func TestUpkeepAfterNonsense(t *testing.T) {
	future, err := json.Marshal(begun{time.Now().Add(time.Hour)})
	must(t, err)
	for _, value := range []string{string(future), "nonsense", ""} {
		s := memstore.New()
		_, err := s.Commit(t.Context(), &store.Commit{ID: "1", Writes: []store.Write{{Key: upkeepKey, Value: []byte(value)}}})
		must(t, err)
		if done, err := newUpkeep(pruned{s, &atomic.Int32{}}, config.Default()).do(t.Context()); err != nil || !done {
			t.Errorf("%q: done %t, %v", value, done, err)
		}
	}
}

// What is left to do when the time is over is done another time.
func TestFinishIsBounded(t *testing.T) {
	if err := within(t.Context(), time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); err == nil {
		t.Error("it did not end")
	}
}

// notes is a host that has the package notes loaded.
func notes(t *testing.T, keep config.Keep) (*Host, *runtime.Package) {
	t.Helper()
	dir := t.TempDir()
	must(t, guests.Extract(filepath.Join(dir, "source")))
	builder, err := build.New(build.Options{Cache: filepath.Join(dir, "cache")})
	must(t, err)
	src, err := tool.Load(filepath.Join(dir, "source", "guests", "notes"), builder.Func(t.Context()))
	must(t, err)
	c := config.Default()
	c.Keep = keep
	h, err := Open(t.Context(), Options{State: filepath.Join(dir, "state"), Config: c})
	must(t, err)
	t.Cleanup(func() { must(t, h.Close(context.Background())) })
	p, err := h.Load(t.Context(), src, config.Package{Source: dir}, trust.Options{})
	must(t, err)
	return h, p
}

// size returns what a folder takes, in bytes.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	}))
	return n
}

// However many calls there are, what they leave beside their effects takes what
// the operator allows, on the disk too.
func TestSizeIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest and makes many calls")
	}
	const allowed = 32 << 10
	h, p := notes(t, config.Keep{Undo: 7 * 24 * time.Hour, UndoSize: allowed, IdempotencyKeys: time.Hour})
	body := strings.Repeat("a line of a note\n", 700)
	call := func(name, arguments string, n int) {
		t.Helper()
		key := fmt.Sprintf("%s-%d", name, n)
		r := p.Call(t.Context(), runtime.Request{Tool: name, Arguments: json.RawMessage(arguments), IdempotencyKey: key})
		if r.Outcome != runtime.OK {
			t.Fatalf("%s: %s, %v", key, r.Outcome, r.Err)
		}
	}
	text, err := json.Marshal(map[string]string{"title": "Long", "body": body})
	must(t, err)
	ahead, id := time.Duration(0), 0
	h.upkeep.now = func() time.Time { return time.Now().Add(ahead) }
	var sizes []int64
	var most int64
	for round := range 4 {
		for range 4 {
			id++
			call("add_note", string(text), id)
			call("delete_note", `{"note_id": 1}`, id)
		}
		before, err := h.store.Usage(t.Context(), undo.Space(runtime.LocalPrincipal, "notes"))
		must(t, err)
		most = max(most, before.Bytes)
		ahead += 25 * time.Hour // blobs and commits are kept for a day
		if done, err := h.upkeep.do(t.Context()); err != nil || !done {
			t.Fatalf("round %d: done %t, %v", round, done, err)
		}
		after, err := h.store.Usage(t.Context(), undo.Space(runtime.LocalPrincipal, "notes"))
		must(t, err)
		if after.Bytes > allowed || after.Keys == 0 {
			t.Errorf("round %d: undo takes %d bytes in %d records, %d are allowed", round, after.Bytes, after.Keys, allowed)
		}
		kept, err := h.store.Usage(t.Context(), store.Space{Principal: runtime.LocalPrincipal, Package: "notes", Area: store.AreaIdempotency})
		must(t, err)
		if kept.Keys != 0 {
			t.Errorf("round %d: %d results under idempotency keys are kept for longer than an hour", round, kept.Keys)
		}
		sizes = append(sizes, size(t, filepath.Join(h.state, "blobs"))+inUse(t, filepath.Join(h.state, "store.db")))
	}
	if most <= allowed {
		t.Fatalf("the calls leave %d bytes: nothing had to go", most)
	}
	if last := sizes[len(sizes)-1]; last == 0 || last > sizes[0]*3/2 {
		t.Errorf("the store grows: %d", sizes)
	}
}

// inUse returns what a database takes without its free pages, in bytes.
func inUse(t *testing.T, path string) int64 {
	t.Helper()
	c, err := sqlite3.Open(path)
	must(t, err)
	defer c.Close()
	var n [3]int64
	for i, pragma := range []string{"page_size", "page_count", "freelist_count"} {
		q, _, err := c.Prepare("PRAGMA " + pragma)
		must(t, err)
		if q.Step() {
			n[i] = q.ColumnInt64(0)
		}
		must(t, q.Close())
	}
	return n[0] * (n[1] - n[2])
}
