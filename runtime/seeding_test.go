package runtime

import (
	"bytes"
	"context"
	"errors"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// reseeding assembles a reactor that takes a seed so: the body returns a number, which
// is not 0 where it took none.
func reseeding(body ...[]byte) *tool.Package {
	return pack(w.Module{
		Funcs: []w.Func{
			{Import: wasiModule, Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
			{Import: wasiModule, Name: "fd_close", Params: []byte{w.I32}, Results: []byte{w.I32}},
			{Name: "sandboxd_reseed", Results: []byte{w.I32}, Body: w.Seq(body...)},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(int64(atText)<<32 | int64(len(cheerful)))},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atText: []byte(cheerful)},
	}.Encode(), tool.Reactor, readOnly)
}

// TestSeedingLeavesNothing: what a module does to its descriptors while it takes a seed
// is gone when it takes the next one.
func TestSeedingLeavesNothing(t *testing.T) {
	loaded, _ := loadReactor(t, reseeding(w.I32Const(1), w.Call(1)))
	if !loaded.factory.reseeds {
		t.Fatal("it takes no seed")
	}
	for range 3 {
		if r := loaded.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
			t.Errorf("%s (%v)", r.Outcome, r.Err)
		}
	}
}

// TestSeedingSharesItsProcessor: a module that takes its time over a seed has it on the
// processor of the call.
func TestSeedingSharesItsProcessor(t *testing.T) {
	const atSeed = 64
	p := reseeding(
		w.I32Const(atSeed), w.I32Const(8), w.Call(0), w.Drop,
		w.I32Const(atSeed), []byte{0x29, 3, 0, 0x50}, // i64.load, i64.eqz
		w.If, w.Forever, w.End, w.I32Const(0))
	loaded, _ := loadReactor(t, p)
	cpus := newProcessors(1)
	loaded.engine.cpus = cpus
	i, err := loaded.instances.Get(t.Context(), &startUp{stderr: new(bytes.Buffer), ledger: nobody()})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.instances.Put(i, Discard)
	seat := cpus.seat()
	if err := seat.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- i.reseed(ctx, bytes.NewReader(make([]byte, 8)), seat) }()
	other := cpus.seat()
	if err := other.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Leave()
	cancel()
	if err := <-ended; !errors.Is(err, errReseed) {
		t.Errorf("%v", err)
	}
}
