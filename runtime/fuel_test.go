package runtime

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// rounds counts down from n, and looks at memory in each round.
func rounds(n int32) []byte {
	return command("", "", w.Seq(w.I32Const(n), w.Call(imports+1)), w.Func{
		Params: []byte{w.I32},
		Body: w.Seq(
			w.Loop, w.I32Const(8), w.I32Load, w.Drop, w.Call(imports+2),
			w.LocalGet(0), w.I32Const(-1), w.I32Add, w.LocalSet(0), w.LocalGet(0), w.BrIf(0), w.End),
	}, w.Func{})
}

// TestFuel: the same call spends the same, it is done where the limit is what it
// spends, and stopped where it is one less.
func TestFuel(t *testing.T) {
	e := newEngine(t, Observer{})
	spend := func(n int32, limit uint64) *Result {
		p := pack(rounds(n), tool.Command, writer)
		p.Manifest.Limits.Fuel = limit
		loaded, _ := load(t, e, p)
		defer loaded.Close(t.Context())
		return loaded.Call(t.Context(), Request{Tool: "t"})
	}
	few, many := spend(1000, 0), spend(1_000_000, 0)
	if few.Outcome != OK || many.Outcome != OK || few.Fuel < 10_000 || many.Fuel < 900*few.Fuel || many.Fuel > 1000*few.Fuel {
		t.Fatalf("%s %d, %s %d", few.Outcome, few.Fuel, many.Outcome, many.Fuel)
	}
	for _, r := range []*Result{few, many} {
		n := map[*Result]int32{few: 1000, many: 1_000_000}[r]
		if again := spend(n, uint64(r.Fuel)); again.Outcome != OK || again.Fuel != r.Fuel {
			t.Errorf("%d rounds with a limit of what they spend: %s (%v), %d", n, again.Outcome, again.Err, again.Fuel)
		}
		short := spend(n, uint64(r.Fuel-1))
		limit, ok := errors.AsType[*LimitError](short.Err)
		if short.Outcome != Limit || !ok || limit.Limit != "fuel" || limit.Most != r.Fuel-1 {
			t.Errorf("%d rounds with one less: %s (%v)", n, short.Outcome, short.Err)
		}
		if text := textOf(t, short); !strings.Contains(text, "fuel limit of") || !strings.Contains(text, "limits.fuel") {
			t.Errorf("the client is told %q", text)
		}
	}
}

// TestFuelIsOfTheCall: an instance that was made ready before, or is put back
// after another call, spends what a new one does.
func TestFuelIsOfTheCall(t *testing.T) {
	seen := map[int64]bool{}
	for _, s := range strategies {
		e, err := New(t.Context(), Options{Store: memstore.New(), State: t.TempDir(), Strategy: s})
		if err != nil {
			t.Fatal(err)
		}
		loaded, _ := load(t, e, pack(reactorThat(rounds10k(), w.Seq(rounds10k(), w.I64Const(int64(atText)<<32|int64(len(cheerful)))), false), tool.Reactor, readOnly))
		for range 4 {
			r := loaded.Call(t.Context(), Request{Tool: "t"})
			if seen[r.Fuel] = true; r.Outcome != OK || r.Fuel == 0 {
				t.Errorf("%s: %s (%v), %d", s, r.Outcome, r.Err, r.Fuel)
			}
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 1 {
		t.Errorf("the same call spends %v", seen)
	}
}

// TestFuelOfStartUp: start-up code has the limit of a call for itself.
func TestFuelOfStartUp(t *testing.T) {
	p := pack(reactor(w.Forever, false), tool.Reactor, readOnly)
	p.Manifest.Limits.Fuel, p.Manifest.Limits.Timeout = 5_000_000, time.Minute
	_, err := newEngine(t, Observer{}).Load(t.Context(), p, Binding{})
	limit, ok := errors.AsType[*LimitError](err)
	load, loading := errors.AsType[*LoadError](err)
	if !ok || limit.Limit != "fuel" || !loading || load.Phase != "_initialize" {
		t.Errorf("%v", err)
	}
	p = pack(reactor(rounds10k(), false), tool.Reactor, readOnly)
	p.Manifest.Limits.Fuel = 150_000 // 100,000 and more for start-up code, next to nothing for the call
	loaded, _ := loadReactor(t, p)
	if r := loaded.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK || r.Fuel > 10_000 {
		t.Errorf("%s (%v), %d", r.Outcome, r.Err, r.Fuel)
	}
}

// TestFuelOfProgram: a program that is run has a limit, too.
func TestFuelOfProgram(t *testing.T) {
	var out bytes.Buffer
	_, err := newEngine(t, Observer{}).Run(t.Context(), RunSpec{
		Name: "p", Module: command("", "", w.Forever), Stdin: &out, Stdout: &out, Stderr: &out,
		Limits: tool.Limits{Memory: 1 << 20, Timeout: time.Minute, Output: 1 << 16, Fuel: 1000},
	})
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != "fuel" {
		t.Errorf("%v", err)
	}
}

// TestEngineIsNoImport: nothing of the engine's own can be imported or exported.
func TestEngineIsNoImport(t *testing.T) {
	m := w.Module{
		Funcs: []w.Func{
			{Import: "sandboxd_engine", Name: "checkpoint", Params: []byte{w.I64}, Results: []byte{w.I64}},
			{Name: "_start"},
		},
		Memory: [2]uint32{1, 0},
	}
	if err := CheckLink(m.Encode(), tool.Command); !errors.Is(err, ErrLink) {
		t.Errorf("checked: %v", err)
	}
	if _, err := newEngine(t, Observer{}).Load(context.Background(), pack(m.Encode(), tool.Command, readOnly), Binding{}); !errors.Is(err, ErrLink) {
		t.Errorf("loaded: %v", err)
	}
}

// rounds10k is code of start-up that takes 10,000 rounds.
func rounds10k() []byte {
	return w.Seq(
		w.I32Const(4096), w.I32Const(10_000), []byte{0x36, 2, 0},
		w.Loop,
		w.I32Const(4096), w.I32Const(4096), w.I32Load, w.I32Const(-1), w.I32Add, []byte{0x36, 2, 0},
		w.I32Const(4096), w.I32Load, w.BrIf(0), w.End)
}

func loadReactor(t *testing.T, p *tool.Package) (*Package, string) {
	t.Helper()
	return load(t, newEngine(t, Observer{}), p)
}
