package runtime

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

// draws builds the reactor of testdata, once.
var draws = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "draws")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "draws.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-buildmode=c-shared", "-o", out, "./testdata/draws")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := build.CombinedOutput(); err != nil {
		return b, err
	}
	return os.ReadFile(out)
})

// compiled is where tests keep the machine code of large modules.
var compiled = sync.OnceValue(func() string { return filepath.Join(os.TempDir(), "sandboxd-runtime-test-cache") })

// goReactor loads the reactor of testdata in an engine of the strategy.
func goReactor(t testing.TB, s Strategy, warmUp *tool.Warmup) *Package {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	module, err := draws()
	if err != nil {
		t.Fatalf("%v\n%s", err, module)
	}
	e, err := New(context.Background(), Options{Store: memstore.New(), Strategy: s, Cache: compiled()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return mustLoad(t, e, &tool.Package{Module: module, Manifest: tool.Manifest{
		Name: "draws", ABI: tool.Reactor, Warmup: warmUp,
		Requests: tool.Requests{Volumes: []tool.VolumeRequest{{Name: "data", Path: "/data"}}},
		Limits:   tool.Limits{Memory: 64 << 20, Timeout: 10 * time.Second, Output: 1 << 20, Writes: 1 << 20, Files: 100},
	}}, Binding{})
}

// said calls a tool that ends well, and returns its text.
func said(t testing.TB, p *Package, name string) string {
	t.Helper()
	r := p.Call(context.Background(), Request{Tool: name})
	if r.Outcome != OK {
		t.Fatalf("%s: %s, %v\n%s", name, r.Outcome, r.Err, r.Stderr)
	}
	return textOf(t, r)
}

// TestGoReactorKinds: a reactor of the SDK is imaged, although its start-up code draws
// random numbers.
func TestGoReactorKinds(t *testing.T) {
	for s, want := range map[Strategy]Kind{StrategyImage: KindInitialized, StrategyNew: KindNew, StrategyPrestarted: KindNew} {
		if k, why := goReactor(t, s, nil).Kind(); k != want || (why == "") != (k != KindNew) {
			t.Errorf("%s: %s, %s", s, k, why)
		}
	}
}

// TestCallsDrawOtherNumbers: what a program draws from the run time of Go differs
// from call to call, and from instance to instance.
func TestCallsDrawOtherNumbers(t *testing.T) {
	for _, s := range strategies {
		p := goReactor(t, s, nil)
		const calls = 40
		var seen [5]map[string]bool
		for range calls {
			for k, line := range strings.Split(strings.TrimSpace(said(t, p, "draw")), "\n") {
				if seen[k] == nil {
					seen[k] = map[string]bool{}
				}
				seen[k][line] = true
			}
		}
		for k, lines := range seen {
			// A map goes round from a random entry: there are some orders only.
			if n := len(lines); k != 3 && n != calls || n < calls/8 {
				t.Errorf("%s: line %d: %d different ones in %d calls: %q", s, k, n, calls, slices.Collect(maps.Keys(lines))[0])
			}
		}
	}
}

// TestNothingIsLeft of a call, however it ends: the next one counts from one.
func TestNothingIsLeft(t *testing.T) {
	for _, s := range strategies {
		p := goReactor(t, s, nil)
		for name, want := range map[string]Outcome{
			"count": OK, "grow": OK, "trap": ToolError, "leave": ToolError, "fail": ToolError, "recurse": Limit,
		} {
			if r := p.Call(context.Background(), Request{Tool: name}); r.Outcome != want && !(name == "recurse" && r.Outcome == ToolError) {
				t.Errorf("%s: %s: %s, %v", s, name, r.Outcome, r.Err)
			}
			if got := said(t, p, "count"); got != "1 0" {
				t.Errorf("%s: after %s: %s", s, name, got)
			}
		}
	}
}

// TestStateHasNoAge: what start-up code made of the time is the same on every
// instance, and its timers are due in every call.
func TestStateHasNoAge(t *testing.T) {
	for _, s := range strategies {
		p := goReactor(t, s, nil)
		for range 3 {
			if got := said(t, p, "age"); got != "2000-01-01T00:00:00Z true" {
				t.Errorf("%s: %s", s, got)
			}
			if got := said(t, p, "timers"); got != "true true" {
				t.Errorf("%s: timers %s", s, got)
			}
		}
	}
}

// TestReplaysSeeAnotherSeed: what start-up code made of chance or time breaks
// idempotence, on images as elsewhere.
func TestReplaysSeeAnotherSeed(t *testing.T) {
	for _, s := range strategies {
		p := goReactor(t, s, nil)
		for range 2 {
			for name, want := range map[string]Outcome{"save": Violation, "save_fresh": Violation, "save_born": Violation, "save_same": OK} {
				if r := p.Call(context.Background(), Request{Tool: name, DryRun: true}); r.Outcome != want {
					t.Errorf("%s: %s: %s, %v", s, name, r.Outcome, r.Err)
				}
			}
		}
	}
}

// TestEndlessCallsAreStopped, again and again, and the next one is not.
func TestEndlessCallsAreStopped(t *testing.T) {
	p := goReactor(t, StrategyImage, nil)
	for range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		r := p.Call(ctx, Request{Tool: "spin"})
		cancel()
		if r.Outcome != Timeout {
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
		if got := said(t, p, "count"); got != "1 0" {
			t.Fatal(got)
		}
	}
}

// TestWarmUp: what the call that is made ahead left is there in every call.
func TestWarmUp(t *testing.T) {
	for _, s := range strategies {
		p := goReactor(t, s, &tool.Warmup{Tool: "count", Arguments: []byte(`{}`)})
		for range 3 {
			if got := said(t, p, "count"); got != "2 0" {
				t.Errorf("%s: %s", s, got)
			}
		}
	}
}
