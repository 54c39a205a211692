package crash

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/postgres"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// programs is where the tools' modules are, built and compiled, for this process
// and for those that it starts.
var programs = os.Getenv("CRASH_TEST_PROGRAMS")

// sources are the packages that are called, by the name of their module's file.
var sources = map[string]string{"steps": "guest", "notes": "../../guests/notes", "memory": "../../guests/memory"}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := runJob(context.Background(), text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		panic(err)
	}
	programs = dir
	if err := compile(context.Background()); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// compile builds the tools.
func compile(ctx context.Context) error {
	b, err := build.New(build.Options{})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		src, err := tool.Load(sources[name], b.Func(ctx))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(programs, name+".wasm"), src.Module, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// place is where calls leave what they do.
type place struct {
	Program string            // one of sources
	State   string            // folder of the embedded store
	URL     string            // of a PostgreSQL server; empty: the embedded store is used
	Folders map[string]string // by volume; those that are not listed are managed
}

// hooks are called by what a world does; any of them may be nil.
type hooks struct {
	step     func(what string) error // before, and after, each step of a commit
	observer runtime.Observer
}

// world is an engine with one package, in this process.
type world struct {
	engine    *runtime.Engine
	store     store.Store
	pkg       *runtime.Package
	conflicts atomic.Int64
}

func (p place) openStore(ctx context.Context) (store.Store, error) {
	if p.URL != "" {
		return postgres.Open(ctx, postgres.Options{URL: p.URL})
	}
	return sqlite.Open(ctx, sqlite.Options{Folder: p.State})
}

func (p place) open(ctx context.Context, h hooks) (_ *world, err error) {
	w := &world{}
	if w.store, err = p.openStore(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(ctx))
		}
	}()
	o := runtime.Options{
		Cache: filepath.Join(programs, "cache"), Store: w.store, SharedStore: p.URL != "",
		Observer: runtime.Tee(h.observer, runtime.Observer{
			Conflict: func(runtime.CallInfo) { w.conflicts.Add(1) },
			Record: func(_ runtime.CallInfo, r *runtime.Result) []store.Record {
				return []store.Record{{Time: time.Now(), Data: []byte(textOf(r))}}
			},
		}),
	}
	if h.step != nil {
		o.Store = &hooked{w.store, h.step}
		o.Disk = func(op, _ string) error { return h.step(op) }
	}
	if w.engine, err = runtime.New(ctx, o); err != nil {
		return nil, err
	}
	src, err := tool.Load(sources[p.Program], func(string, tool.Source, tool.ABI) ([]byte, error) {
		return os.ReadFile(filepath.Join(programs, p.Program+".wasm"))
	})
	if err != nil {
		return nil, err
	}
	w.pkg, err = w.engine.Load(ctx, src, runtime.Binding{Folders: p.Folders, Outbox: src.Manifest.Requests.Outbox})
	return w, err
}

func (w *world) close(ctx context.Context) error {
	var err error
	if w.engine != nil {
		err = w.engine.Close(ctx)
	}
	return errors.Join(err, w.store.Close())
}

// opened returns a world that the test closes.
func (p place) opened(t testing.TB, h hooks) *world {
	t.Helper()
	w, err := p.open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// hooked is a store that tells of what it is about to do, and of commits that
// are done: an error then is an answer that is lost.
type hooked struct {
	store.Store
	step func(what string) error
}

func (h *hooked) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := h.step("snapshot"); err != nil {
		return nil, err
	}
	return h.Store.Snapshot(ctx)
}

func (h *hooked) PutBlob(ctx context.Context, data []byte) (store.Digest, error) {
	if err := h.step("blob"); err != nil {
		return store.Digest{}, err
	}
	return h.Store.PutBlob(ctx, data)
}

func (h *hooked) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	if err := h.step("commit"); err != nil {
		return 0, err
	}
	v, err := h.Store.Commit(ctx, c)
	if err != nil {
		return v, err
	}
	if err := h.step("committed"); err != nil {
		return 0, errors.Join(store.ErrUnknown, err)
	}
	return v, nil
}

// operation is one of the tool that this package has.
type operation struct {
	Do   string `json:"do"`
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
	To   string `json:"to,omitempty"`
	N    int    `json:"n,omitempty"`
}

// call does operations in one call and returns what each of them saw.
func (w *world) call(ctx context.Context, name string, ops []operation, n runtime.Notify) ([]string, *runtime.Result) {
	arguments, err := json.Marshal(map[string]any{"operations": ops})
	if err != nil {
		panic(err)
	}
	r := w.pkg.Call(ctx, runtime.Request{Tool: name, Arguments: arguments, Notify: n})
	var saw []string
	if r.Outcome == runtime.OK {
		if err := json.Unmarshal([]byte(textOf(r)), &saw); err != nil {
			panic(err)
		}
	}
	return saw, r
}

// must is a call that has to end well.
func (w *world) must(t testing.TB, name string, ops ...operation) ([]string, *runtime.Result) {
	t.Helper()
	saw, r := w.call(t.Context(), name, ops, runtime.Notify{})
	if r.Outcome != runtime.OK || r.Err != nil {
		t.Fatalf("%s: %s, %v, %s", name, r.Outcome, r.Err, textOf(r))
	}
	return saw, r
}

func textOf(r *runtime.Result) string {
	var c struct{ Text string }
	if len(r.Output.Content) == 0 || json.Unmarshal(r.Output.Content[0], &c) != nil {
		return ""
	}
	return c.Text
}

// sideBySide runs n functions at once.
func sideBySide(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
