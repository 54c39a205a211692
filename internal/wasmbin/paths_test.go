package wasmbin

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// tick adds 1 to a global that the host can read.
var tick = []byte{opGlobalGet, 0, opI64Const, 1, 0x7c, opGlobalSet, 0}

const tickWeight = 4

func ticks(n int) []byte { return bytes.Repeat(tick, n) }

// ticking returns a module whose function run goes round code for ever. Local 0 is 0.
// Function 1 is a light one.
func ticking(code ...[]byte) []byte {
	return mod(
		sec(sectionType, vec(functype("\x7f", ""), functype("", ""))),
		sec(sectionFunction, vec(num(0), num(1))),
		sec(sectionGlobal, vec([]byte{byte(I64), 1, opI64Const, 0, opEnd})),
		sec(sectionExport, vec(cat(str("run"), []byte{0, 0}), cat(str("ticks"), []byte{3, 0}))),
		sec(sectionCode, vec(
			fn(cat([]byte{opLoop, 0x40}, cat(code...), []byte{opBr, 0, opEnd, opEnd})...),
			fn(cat(ticks(lightWeight/tickWeight), []byte{opEnd})...),
		)),
	)
}

// between runs a module for some checkpoints, and returns the most and the fewest
// ticks between two of them.
func between(t *testing.T, b []byte, name string, arg uint64) (most, fewest int64) {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	enough := errors.New("enough")
	rounds, last := 0, int64(0)
	fewest = 1 << 62
	checkpoint := func(_ context.Context, mod api.Module, stack []uint64) {
		now := int64(mod.ExportedGlobal("ticks").Get())
		if rounds++; rounds > 2 { // the first comes at once, and the second after what it had paid
			most, fewest = max(most, now-last), min(fewest, now-last)
		}
		if last = now; rounds == 30 {
			panic(enough)
		}
		stack[0] = quantum
	}
	i64 := []api.ValueType{api.ValueTypeI64}
	if _, err := r.NewHostModuleBuilder(EngineModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(checkpoint), i64, i64).
		Export(CheckpointName).Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(t.Context(), rewritten(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction(name).Call(t.Context(), arg); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return most, fewest
}

// TestRewriteStretches counts what code does between two checkpoints that is one long
// run: at most what a quantum pays for, whatever its shape, and where it is plain as
// much as that.
func TestRewriteStretches(t *testing.T) {
	repeat := func(n int, code ...[]byte) []byte { return bytes.Repeat(cat(code...), n) }
	never := []byte{opLocalGet, 0, opBrIf, 0}
	block, end := []byte{opBlock, 0x40}, []byte{opEnd}
	for _, tt := range []struct {
		name   string
		code   []byte
		fewest int64 // of a quantum, parts of 16
	}{
		{"plain", ticks(30_000), 15},
		{"branches that are never taken", cat(block, repeat(3000, ticks(10), never), end), 12},
		{"a way back that is never taken", repeat(3000, ticks(10), never), 12},
		{"returns that are never taken", repeat(1000, ticks(30), []byte{opLocalGet, 0, opIf, 0x40, opReturn, opEnd}), 12},
		{"tables", repeat(500, block, block, ticks(5), []byte{opLocalGet, 0, opBrTable, 1, 0, 1, opEnd}, ticks(40), end, ticks(10)), 8},
		{"arms that fall through", cat(repeat(100, block), []byte{opLocalGet, 0, opBrTable, 1, 0, 99}, repeat(100, end, ticks(40))), 12},
		{"first arms", repeat(300, []byte{opLocalGet, 0, 0x45, opIf, 0x40}, ticks(90), []byte{opElse}, ticks(10), end), 8},
		{"second arms", repeat(300, []byte{opLocalGet, 0, opIf, 0x40}, ticks(10), []byte{opElse}, ticks(90), end), 8},
		{"arms that are heavy and not run", repeat(100, []byte{opLocalGet, 0, opIf, 0x40}, ticks(300), end, ticks(10)), 0},
		{"nested blocks", cat(repeat(500, block, ticks(20)), repeat(500, ticks(20), never, end)), 12},
		{"calls of light functions", repeat(10_000, []byte{opCall, 1}), 8},
		{"loops", repeat(1000, []byte{opLoop, 0x40}, ticks(20), end, ticks(20)), 4},
		{"with operands", cat(repeat(100, []byte{opI32Const, 7}), ticks(10_000), repeat(100, []byte{opDrop})), 15},
	} {
		most, fewest := between(t, ticking(tt.code), "run", 0)
		if weight := most * tickWeight; weight > quantum+2*stretch {
			t.Errorf("%s: %d run between two checkpoints, want at most %d", tt.name, weight, quantum)
		}
		if fewest*tickWeight*16 < quantum*tt.fewest {
			t.Errorf("%s: only %d run between two checkpoints, of %d", tt.name, fewest*tickWeight, quantum)
		}
	}
}

// TestRewriteReturns counts what a deep recursion does when it comes back, frame after
// frame: what is left after a call is paid for then where it is much.
func TestRewriteReturns(t *testing.T) {
	b := mod(
		sec(sectionType, vec(functype("\x7f", ""))),
		sec(sectionFunction, vec(num(0), num(0))),
		sec(sectionGlobal, vec([]byte{byte(I64), 1, opI64Const, 0, opEnd})),
		sec(sectionExport, vec(cat(str("run"), []byte{0, 0}), cat(str("ticks"), []byte{3, 0}))),
		sec(sectionCode, vec(
			fn(opLoop, 0x40, opLocalGet, 0, opCall, 1, opBr, 0, opEnd, opEnd),
			fn(cat([]byte{
				opLocalGet, 0, opIf, 0x40, opLocalGet, 0, opI32Const, 1, opI32Sub, opCall, 1, opEnd,
			}, ticks(100), []byte{opEnd})...),
		)),
	)
	const depth = 40_000
	if most, _ := between(t, b, "run", depth); most*tickWeight > 2*quantum {
		t.Errorf("%d run between two checkpoints, want about %d", most*tickWeight, quantum)
	}
}
