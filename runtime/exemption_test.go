package runtime

import (
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// TestNoTextIsAnExemption: what a second run sends counts, whatever the guest
// names it; of files some details say that there is no effect.
func TestNoTextIsAnExemption(t *testing.T) {
	idempotent := capabilities.Claim{Idempotent: capabilities.True}
	for _, name := range []string{"times", "directory", "a"} {
		find := w.Seq(w.I32Const(atKey), w.I32Const(1), w.I32Const(4000), w.I32Const(100), w.I32Const(atResult), w.Call(kvGet))
		send := w.Seq(
			w.I32Const(atHost), w.I32Const(int32(len(host))), w.I32Const(atMethod), w.I32Const(4), w.I32Const(atMethod+4), w.I32Const(1),
			w.I32Const(0), w.I32Const(0), w.I32Const(atText), w.I32Const(int32(len(name))), w.I32Const(atValue), w.I32Const(1), w.Call(boxSend), w.Drop)
		m := w.Module{
			Funcs:  append(append(append([]w.Func{}, wasiImports...), storeImports...), w.Func{Name: "_start", Body: w.Seq(find, []byte{0x04, 0x40}, putKey, []byte{0x05}, send, []byte{0x0b})}),
			Memory: [2]uint32{1, 0},
			Data:   map[uint32][]byte{atText: []byte(name), atKey: []byte("k"), atValue: []byte("7"), atHost: []byte(host), atMethod: []byte("POST/")},
		}
		p := keyed(nil, idempotent)
		p.Module = m.Encode()
		r := mustLoad(t, engineOver(t, memstore.New()), p, sends1).Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != Violation || r.Violation == nil || r.Violation.Hint != capabilities.IdempotentHint {
			t.Errorf("%s: %s (%v)", name, r.Outcome, r.Err)
		}
	}
}
