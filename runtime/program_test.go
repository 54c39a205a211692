package runtime

import (
	"bytes"
	"slices"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// TestProgramHasNoKeys: a program that is run for no request is told that there
// are no keys and no outbox, and goes on.
func TestProgramHasNoKeys(t *testing.T) {
	for name, c := range map[string]struct{ function, params int }{"get": {kvGet, 5}, "send": {boxSend, 12}} {
		body := slices.Concat(slices.Repeat(w.I32Const(0), c.params), w.Call(c.function), w.Call(procExit))
		m := w.Module{
			Funcs:  slices.Concat(wasiImports, storeImports, []w.Func{{Name: "_start", Body: body}}),
			Memory: [2]uint32{1, 0},
		}
		var out bytes.Buffer
		const notSupported = 58
		exit, err := newEngine(t, Observer{}).Run(t.Context(), RunSpec{
			Name: "p", Module: m.Encode(), Stdin: &out, Stdout: &out, Stderr: &out,
			Limits: tool.Limits{Memory: 1 << 20, Timeout: 5 * time.Second, Output: 1 << 16},
		})
		if exit != notSupported || err != nil {
			t.Errorf("%s: %d, %v", name, exit, err)
		}
	}
}
