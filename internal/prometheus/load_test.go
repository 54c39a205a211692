package prometheus

import (
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/internal/metrics"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// tally is what the callers saw.
type tally struct {
	mu         sync.Mutex
	ids        map[string]bool
	total      float64
	calls      map[string]float64 // by tool and outcome
	byTool     map[string]float64
	violations map[string]float64 // by tool, hint and operation
	denials    map[string]float64 // by tool and capability
	conflicts  map[string]float64 // by tool
	replays    map[string]float64 // by tool and verdict
	sends      map[string]float64 // by tool and kind
	committed  float64
}

func newTally() *tally {
	return &tally{
		ids: map[string]bool{}, calls: map[string]float64{}, byTool: map[string]float64{},
		violations: map[string]float64{}, denials: map[string]float64{}, conflicts: map[string]float64{},
		replays: map[string]float64{}, sends: map[string]float64{},
	}
}

func (y *tally) add(name string, r *runtime.Result) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.ids[r.CallID] = true
	y.total++
	y.calls[name+" "+string(r.Outcome)]++
	y.byTool[name]++
	if r.Committed {
		y.committed++
	}
	for _, v := range r.All {
		y.violations[name+" "+v.Hint.String()+" "+string(v.Operation)]++
	}
	for _, e := range r.Effects {
		if e.Verb == capabilities.Send && r.Committed {
			y.sends[name+" "+string(e.Kind)]++
		}
	}
	for _, d := range r.Denials {
		y.denials[name+" "+string(d.Capability)]++
	}
}

// conflicted counts a run that met a conflict, of which callers are told only
// where it was the last.
func (y *tally) conflicted(i runtime.CallInfo) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.conflicts[served(i.Package, i.Tool)]++
}

// replayed counts a second run, of which callers are told only where it showed
// something.
func (y *tally) replayed(i runtime.CallInfo, v runtime.Replay) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.replays[served(i.Package, i.Tool)+" "+string(v)]++
}

// stage is an engine with bundled packages whose metrics are served.
type stage struct {
	metrics  *metrics.Metrics
	seen     *tally
	target   string // host and port
	packages map[string]*runtime.Package
}

// served is the name that clients would see: not the package's own, so that
// one is not taken for the other.
func served(pkg, tool string) string { return pkg + "_" + tool }

func newStage(t *testing.T, names ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{
		metrics:  metrics.New(metrics.Options{Version: "v0.0.0-test", Commit: "abc"}),
		seen:     newTally(),
		packages: map[string]*runtime.Package{},
	}
	web := httptest.NewServer(s.metrics.Handler())
	t.Cleanup(web.Close)
	s.target = web.Listener.Addr().String()
	source := filepath.Join(dir, "source")
	if err := guests.Extract(source); err != nil {
		t.Fatal(err)
	}
	builder, err := build.New(build.Options{Cache: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := runtime.New(t.Context(), runtime.Options{
		State:    filepath.Join(dir, "state"),
		Observer: runtime.Tee(s.metrics.Observer(), runtime.Observer{Conflict: s.seen.conflicted, Replayed: s.seen.replayed}),
		Store:    memstore.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		src, err := tool.Load(filepath.Join(source, "guests", name), builder.Func(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "host", name)
		if err := guests.Seed(name, "data", folder); err != nil {
			t.Fatal(err)
		}
		p, err := engine.Load(t.Context(), src, runtime.Binding{
			Folders: map[string]string{"data": folder}, Outbox: []string{"mail.example.com"},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.packages[name] = p
		tools := map[string]string{}
		for _, tool := range p.Tools() {
			tools[tool.Definition.Name] = served(name, tool.Definition.Name)
		}
		s.metrics.Serve(name, tools)
	}
	return s
}

// load makes each case's call that many times, packages at once, honest calls
// and lies; and calls that write to one file at once.
func (s *stage) load(t *testing.T, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	for name, p := range s.packages {
		cases, err := guests.Cases(name)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range rounds {
				for _, c := range cases {
					s.call(t, p, c.Tool, c.Arguments)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range rounds {
				s.call(t, s.packages["notes"], "add_note", []byte(`{"title": "Tea", "body": "green"}`))
			}
		})
	}
	wg.Wait()
}

func (s *stage) call(t *testing.T, p *runtime.Package, tool string, arguments []byte) {
	s.seen.add(served(p.Name(), tool), p.Call(t.Context(), runtime.Request{Tool: tool, Arguments: arguments}))
}
