package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

var randomGet = w.Func{Import: wasiModule, Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}}

// drawing assembles a reactor that draws a byte when it starts, answers with it, and
// has what reseed says as its hook; nil: none. Where the hook draws it draws the same byte.
func drawing(init bool, reseed []byte) []byte {
	draw := w.Seq(w.I32Const(atText), w.I32Const(1), w.Call(0), w.Drop)
	m := w.Module{
		Funcs: []w.Func{
			randomGet,
			{Import: wasiModule, Name: "sock_shutdown", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
			{Name: "_initialize"},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(atText<<32 | 8)},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atText: []byte("........")},
	}
	if init {
		m.Funcs[2].Body = draw
	}
	if reseed != nil {
		m.Funcs = append(m.Funcs, w.Func{Name: reseedExport, Results: []byte{w.I32}, Body: reseed})
	}
	return m.Encode()
}

var drawsEight = w.Seq(w.I32Const(atText), w.I32Const(8), w.Call(0))

// TestKinds: what cannot be put back is new for each call, and the reason is told.
func TestKinds(t *testing.T) {
	setsTable := w.Module{Funcs: []w.Func{{Name: "_start", Body: w.Seq(w.I32Const(0), []byte{0xd0, 0x70, 0x26, 0})}}, Memory: [2]uint32{1, 0}, Table: [2]uint32{1, 1}}
	for name, c := range map[string]struct {
		module []byte
		abi    tool.ABI
		kind   Kind
		why    Reason
	}{
		"command":                     {command("", "", nil), tool.Command, KindInstantiated, ""},
		"reactor":                     {drawing(false, nil), tool.Reactor, KindInitialized, ""},
		"draws at its start":          {drawing(true, nil), tool.Reactor, KindNew, ReasonRandom},
		"draws, and takes a seed":     {drawing(true, drawsEight), tool.Reactor, KindInitialized, ""},
		"takes a seed only":           {drawing(false, drawsEight), tool.Reactor, KindInitialized, ""},
		"takes no seed after all":     {drawing(true, w.I32Const(1)), tool.Reactor, KindNew, ReasonRandom},
		"traps when it takes a seed":  {drawing(false, w.Unreachable), tool.Reactor, KindNew, ReasonRandom},
		"opens a socket for its seed": {drawing(false, w.Seq(w.I32Const(0), w.I32Const(0), w.Call(1))), tool.Reactor, KindNew, ReasonRandom},
		"sets an entry of a table":    {setsTable.Encode(), tool.Command, KindNew, "table changed"},
	} {
		e := newEngine(t, Observer{Kind: func(pkg string, k Kind, why Reason) {
			if pkg != "p" || k != c.kind || why != c.why {
				t.Errorf("%s: told %s, %q", name, k, why)
			}
		}})
		p := mustLoad(t, e, pack(c.module, c.abi, readOnly), Binding{})
		if k, why := p.Kind(); k != c.kind || why != c.why {
			t.Errorf("%s: %s, %q; want %s, %q", name, k, why, c.kind, c.why)
		}
		for range 2 {
			if r := p.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
				t.Errorf("%s: %s, %v", name, r.Outcome, r.Err)
			}
		}
		prospect, err := ProspectOf(p.Source())
		if err != nil || prospect.Reason != c.why && c.why != ReasonRandom ||
			c.kind == KindNew && prospect.Kind != KindNew && c.why != ReasonRandom ||
			name == "draws at its start" && !strings.Contains(prospect.Detail, reseedExport) {
			t.Errorf("%s: prospect %+v, %v", name, prospect, err)
		}
	}
}

// TestSeedBeyondFuel: a module that takes a seed, and has too little fuel for it, is told so, in
// place of being one that takes none.
func TestSeedBeyondFuel(t *testing.T) {
	p := pack(drawing(true, w.Seq(w.Loop, w.I32Const(8), w.I32Load, w.Drop, []byte{0x0c, 0}, w.End, w.I32Const(0))), tool.Reactor, readOnly)
	p.Manifest.Limits.Fuel = 1000
	err := tryLoad(t, p)
	load, _ := errors.AsType[*LoadError](err)
	limit, ok := errors.AsType[*LimitError](err)
	if !ok || limit.Limit != "fuel" || load == nil || load.Phase != reseedExport || !strings.Contains(err.Error(), "limits.fuel") {
		t.Errorf("%v", err)
	}
}

// TestDescribedBySound: an instance that took no seed may have stopped in the midst, and is
// not asked for the tools.
func TestDescribedBySound(t *testing.T) {
	const text = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	module := w.Module{
		Funcs: []w.Func{
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(atText << 32)},
			{Name: reseedExport, Results: []byte{w.I32}, Body: w.Seq(w.I32Const(0), w.I32Const(1), []byte{0x36, 2, 0}, w.Unreachable)},
			{Name: "sandboxd_describe", Results: []byte{w.I64}, Body: w.Seq(
				w.I32Const(0), w.I32Load, w.If, w.Unreachable, w.End, w.I64Const(atText<<32|int64(len(text))))},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atText: []byte(text)},
	}
	p := pack(module.Encode(), tool.Reactor, readOnly)
	p.Manifest.Tools = nil
	loaded := mustLoad(t, newEngine(t, Observer{}), p, Binding{})
	if _, ok := loaded.Tool("t"); !ok || loaded.kind != KindNew {
		t.Errorf("%v, %s", loaded.Tools(), loaded.kind)
	}
}

// TestEachCallIsSeeded: a module that takes a seed gets one of each call.
func TestEachCallIsSeeded(t *testing.T) {
	for _, s := range strategies {
		e, err := New(context.Background(), Options{Store: memstore.New(), Strategy: s})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(context.Background())
		p := mustLoad(t, e, pack(drawing(true, w.Seq(drawsEight)), tool.Reactor, readOnly), Binding{})
		seen := map[string]bool{}
		for range 20 {
			seen[said(t, p, "t")] = true
		}
		if len(seen) < 15 { // of 8 random bytes, which are no UTF-8 for the most part
			t.Errorf("%s: %d different answers of 20", s, len(seen))
		}
	}
}

// TestHookThatFailsLater: a call that gets no seed is an error of the tool, and the next
// one tries on another instance.
func TestHookThatFailsLater(t *testing.T) {
	// The hook fails when a random byte is odd.
	odd := w.Seq(w.I32Const(atText), w.I32Const(1), w.Call(0), w.Drop, w.I32Const(atText), []byte{0x2d, 0, 0}, w.I32Const(1), []byte{0x71})
	e := newEngine(t, Observer{})
	var p *Package
	for p == nil || p.kind != KindInitialized {
		p = mustLoad(t, e, pack(drawing(false, odd), tool.Reactor, readOnly), Binding{})
	}
	outcomes := map[Outcome]int{}
	for range 100 {
		outcomes[p.Call(context.Background(), Request{Tool: "t"}).Outcome]++
	}
	if outcomes[OK] == 0 || outcomes[ToolError] == 0 || len(outcomes) != 2 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// TestWarmUpIsSealed: what is called ahead touches no volume, and ends well.
func TestWarmUpIsSealed(t *testing.T) {
	for name, c := range map[string]struct {
		call  []byte
		phase string
		is    func(error) bool
	}{
		"opens a file": {w.Seq(open("new", 0, rightRead), w.I64Const(0)), "warmup", isSealed},
		"traps":        {w.Unreachable, "warmup", func(err error) bool { _, ok := errors.AsType[*TrapError](err); return ok }},
		"never ends":   {w.Seq(w.Forever, w.I64Const(0)), "warmup", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		p := pack(reactorThat(nil, c.call, false), tool.Reactor, writer)
		p.Manifest.Warmup = &tool.Warmup{Tool: "t", Arguments: []byte(`{}`)}
		p.Manifest.Limits.Timeout = 300e6
		err := tryLoad(t, p)
		load, ok := errors.AsType[*LoadError](err)
		if !ok || load.Phase != c.phase || !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := pack(reactor(nil, false), tool.Reactor, writer)
	p.Manifest.Warmup = &tool.Warmup{Tool: "other", Arguments: []byte(`{}`)}
	if err := tryLoad(t, p); !errors.Is(err, ErrNoTool) {
		t.Errorf("another tool: %v", err)
	}
	p.Manifest.Warmup = &tool.Warmup{Tool: "t", Arguments: []byte(`[]`)}
	if err := tryLoad(t, p); !errors.Is(err, ErrArguments) {
		t.Errorf("no arguments: %v", err)
	}
	p.Manifest.Warmup.Arguments = []byte(`{}`)
	if err := tryLoad(t, p); err != nil {
		t.Error(err)
	}
}
