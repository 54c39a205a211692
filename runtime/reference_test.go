package runtime

import (
	"errors"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestReferencesTakeNoMemory: code that refers to a function again and again takes
// nothing of the host.
func TestReferencesTakeNoMemory(t *testing.T) {
	const rounds = 300_000
	call := w.Seq(
		w.I32Const(4096), w.I32Const(rounds), []byte{0x36, 2, 0},
		w.Loop,
		[]byte{0xd2}, w.Uint(uint64(imports)), w.Drop,
		w.I32Const(4096), w.I32Const(4096), w.I32Load, w.I32Const(-1), w.I32Add, []byte{0x36, 2, 0},
		w.I32Const(4096), w.I32Load, w.BrIf(0), w.End,
		w.I64Const(int64(atText)<<32|int64(len(cheerful))))
	loaded, _ := loadReactor(t, pack(reactorThat(nil, call, false), tool.Reactor, readOnly))
	took := allocated(func() {
		if r := loaded.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
			t.Errorf("%s (%v)", r.Outcome, r.Err)
		}
	})
	if took > rounds {
		t.Errorf("%d references took %d bytes", rounds, took)
	}
}

// TestWhatAModuleDeclaresIsBounded: globals, tables and segments are in each instance,
// however few pages of memory it may have, and count where it waits.
func TestWhatAModuleDeclaresIsBounded(t *testing.T) {
	declaring := func(globals int) *tool.Package {
		m := w.Module{
			Funcs: []w.Func{
				{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
				{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(int64(atText)<<32 | int64(len(cheerful)))},
			},
			Memory: [2]uint32{1, 0},
			Data:   map[uint32][]byte{atText: []byte(cheerful)},
		}
		m.Globals = slices.Repeat([]w.Global{{Type: w.I32, Init: w.I32Const(0)}}, globals)
		return pack(m.Encode(), tool.Reactor, readOnly)
	}
	_, err := newEngine(t, Observer{}).Load(t.Context(), declaring(400_000), Binding{})
	if !errors.Is(err, wasmbin.ErrLimit) {
		t.Errorf("%v", err)
	}
	const globals = 50_000
	e := newEngine(t, Observer{})
	loaded, _ := load(t, e, declaring(globals))
	if r := loaded.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
		t.Fatalf("%s (%v)", r.Outcome, r.Err)
	}
	e.warm.mu.Lock()
	defer e.warm.mu.Unlock()
	if e.warm.newest == nil || e.warm.held < 80*globals {
		t.Errorf("%d bytes wait", e.warm.held)
	}
}
