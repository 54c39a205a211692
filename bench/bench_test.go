// Package bench measures parts of a call: the commit of its changes, and the judging
// of what it may lose. What a call costs beside its peers is measured by bench/peers.
package bench

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// minimal is a reactor, assembled by hand, that answers without looking at its
// request: what the sandbox itself costs, without a language's start-up.
func minimal(tb testing.TB) *runtime.Package {
	tb.Helper()
	const at, answer = 1024, "hello"
	m := w.Module{
		Funcs: []w.Func{
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(at<<32 | int64(len(answer)))},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{at: []byte(answer)},
	}
	return load(tb, &tool.Package{Module: m.Encode(), Manifest: tool.Manifest{
		Name: "minimal", ABI: tool.Reactor,
		Tools:  []tool.Definition{definition("echo", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		Limits: tool.Limits{Memory: 1 << 20, Timeout: 5 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
	}})
}

func definition(name, schema string) tool.Definition {
	return tool.Definition{
		Name: name, InputSchema: json.RawMessage(schema),
		Claim: capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False},
	}
}

func load(tb testing.TB, p *tool.Package) *runtime.Package {
	tb.Helper()
	e, err := runtime.New(tb.Context(), runtime.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	loaded, err := e.Load(tb.Context(), p, runtime.Binding{})
	if err != nil {
		tb.Fatal(err)
	}
	return loaded
}
