package runtime

import (
	"io"
	goruntime "runtime"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// plunging returns a package whose calls are in the midst of so many calls of their own.
func plunging(depth int32) *tool.Package {
	down := w.Func{Params: []byte{w.I32}, Body: w.Seq(w.LocalGet(0), w.If, w.LocalGet(0), w.I32Const(-1), w.I32Add, w.Call(imports+1), w.End)}
	return pack(command("", "ok", w.Seq(w.I32Const(depth), w.Call(imports+1), write(1, 2)), down), tool.Command, writer)
}

// heap returns how much memory of Go is in use, in bytes.
func heap() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDeepStacksAreGivenBack: an instance that waits keeps no stack that one call
// made large, and what it keeps is within the budget.
func TestDeepStacksAreGivenBack(t *testing.T) {
	const n, depth = 100, 50_000
	e := newEngine(t, Observer{})
	p, _ := load(t, e, plunging(depth))
	pool := p.instances.(*pool)
	before := heap()
	var held []*Instance
	for range n {
		said(t, p, "t")
		i, err := pool.Get(t.Context(), &startUp{stderr: io.Discard, ledger: nobody()})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, i) // or the next call would have it
	}
	for _, i := range held {
		pool.Put(i, Reset)
	}
	if w := pool.shelf.waiting(); w != n {
		t.Fatalf("%d instances wait", w)
	}
	grown, most := heap()-before, int64(e.warm.held)
	if grown > most || grown > n*instanceBytes {
		t.Errorf("%d KiB for %d instances, %d KiB are counted", grown>>10, n, most>>10)
	}
	t.Logf("%d KiB for each instance", grown>>10/n)
	goruntime.KeepAlive(held)
}

// TestStacksAreSeen holds what is read of the engine: a stack that grows is seen to,
// and one that is moderate stays.
func TestStacksAreSeen(t *testing.T) {
	for _, tt := range []struct {
		depth int32
		kept  bool
	}{{1, true}, {1000, true}, {50_000, false}} {
		p, _ := load(t, newEngine(t, Observer{}), plunging(tt.depth))
		i, err := p.instances.Get(t.Context(), &startUp{stderr: io.Discard, ledger: nobody()})
		if err != nil {
			t.Fatal(err)
		}
		was := i.exports.start
		stack := stackOf(was)
		if !stack.IsValid() || stack.Len() < 1<<10 || stack.Len() > 64<<10 {
			t.Fatalf("a stack of %v", stack)
		}
		small := stack.Len()
		p.instances.Put(i, Reset)
		said(t, p, "t")
		large := stack.Len()
		if i.exports.start == was != tt.kept || large > maxStack == tt.kept || tt.depth == 1000 && large <= small {
			t.Errorf("depth %d: a stack of %d bytes, kept %t", tt.depth, large, i.exports.start == was)
		}
		if tt.kept && i.bytes < uint64(large)+instanceBytes {
			t.Errorf("depth %d: %d bytes are counted", tt.depth, i.bytes)
		}
	}
	if stackOf(nil).IsValid() {
		t.Error("the stack of nothing is known")
	}
}

func BenchmarkStackOf(b *testing.B) {
	p, _ := load(b, newEngine(b, Observer{}), plunging(1))
	i, err := p.instances.Get(b.Context(), &startUp{stderr: io.Discard, ledger: nobody()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		i.fold(p.factory)
	}
}
