package wasmbin

import (
	"bytes"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestKept measures what instances take of the host's memory: no more than is said, and
// not much less.
func TestKept(t *testing.T) {
	const n, instances = 50_000, 4
	many := func(b ...byte) []byte { return cat(num(n), bytes.Repeat(b, n)) }
	for name, sections := range map[string][][]byte{
		"globals":          {sec(sectionGlobal, many(0x7f, 0, opI32Const, 0, opEnd))},
		"data segments":    {sec(sectionMemory, vec([]byte{1, 1, 1})), sec(sectionDataCount, num(n)), sec(sectionData, many(1, 0))},
		"element segments": {sec(sectionElement, many(1, 0, 0))},
		"elements": {
			sec(sectionType, vec(functype("", ""))), sec(sectionFunction, vec(num(0))),
			sec(sectionElement, vec(cat([]byte{1, 0}, many(0)))), sec(sectionCode, vec(fn(opEnd))),
		},
		"tables": {sec(sectionTable, vec(cat([]byte{0x70, 1}, num(n), num(n)), cat([]byte{0x6f, 1}, num(n), num(n))))},
	} {
		b, err := Rewrite(mod(sections...), roomy)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept, err := Kept(b.Module)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx := t.Context()
		w := wazero.NewRuntime(ctx)
		defer w.Close(ctx)
		newMeter(quantum).register(t, w)
		c, err := w.CompileModule(ctx, b.Module)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := live()
		for i := range instances {
			if _, err := w.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName(fmt.Sprint(i))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		took := (live() - before) / instances
		if took > kept+64<<10 || took < kept/2 {
			t.Errorf("%s: %d bytes each, and %d are said", name, took, kept)
		}
	}
}

// live returns how many bytes of memory are in use.
func live() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
