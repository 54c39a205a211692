// Package bench measures what a call costs: the same tools natively and as
// guests, at the engine, over MCP in memory, and over HTTP.
package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/build"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// fileText is what the file of read_file holds.
var fileText = strings.Repeat("0123456789abcdef", 256) // 4 KiB

// request is one of the compared calls, with the text that it must answer.
type request struct {
	name      string
	tool      string
	arguments json.RawMessage
	answer    string
}

var requests = []request{
	{"echo", "echo", json.RawMessage(`{"text":"hello"}`), "hello"},
	{"read_file", "read_file", json.RawMessage(`{"name":"a.txt"}`), fileText},
}

// folder makes the folder of the file.
func folder(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(fileText), 0o600); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// guest builds the guest in Go and loads it.
func guest(tb testing.TB) *runtime.Package {
	tb.Helper()
	builder, err := build.New(build.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := tool.Load("guest", builder.Func(tb.Context()))
	if err != nil {
		tb.Fatal(err)
	}
	return load(tb, p)
}

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
	folders := map[string]string{}
	for _, v := range p.Manifest.Requests.Volumes {
		folders[v.Name] = folder(tb)
	}
	loaded, err := e.Load(tb.Context(), p, runtime.Binding{Folders: folders})
	if err != nil {
		tb.Fatal(err)
	}
	return loaded
}
