// Package bench measures what a call costs.
package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// small is a reactor that answers without looking at its request.
func small() *tool.Package {
	const at, answer = 1024, "hello"
	m := w.Module{
		Funcs: []w.Func{
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(at<<32 | int64(len(answer)))},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{at: []byte(answer)},
	}
	return &tool.Package{
		Module: m.Encode(),
		Manifest: tool.Manifest{
			Name: "small", ABI: tool.Reactor,
			Tools: []tool.Definition{{
				Name: "hello", InputSchema: []byte(`{"type":"object"}`),
				Claim: capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False},
			}},
			Limits: tool.Limits{Memory: 1 << 20, Timeout: 5 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
		},
	}
}

// notes is the bundled guest, built from its source.
func notes(b *testing.B) *tool.Package {
	b.Helper()
	dir := b.TempDir()
	if err := guests.Extract(dir); err != nil {
		b.Fatal(err)
	}
	builder, err := build.New(build.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p, err := tool.Load(filepath.Join(dir, "guests", "notes"), builder.Func(b.Context()))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// load loads a package whose volume holds three notes.
func load(b *testing.B, p *tool.Package) *runtime.Package {
	b.Helper()
	e, err := runtime.New(b.Context(), runtime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	folders := map[string]string{}
	for _, v := range p.Manifest.Requests.Volumes {
		dir := b.TempDir()
		three := `[{"id":1,"title":"a","body":"x"},{"id":2,"title":"b","body":"y"},{"id":3,"title":"c","body":"z"}]`
		if err := os.WriteFile(filepath.Join(dir, "notes.json"), []byte(three), 0o600); err != nil {
			b.Fatal(err)
		}
		folders[v.Name] = dir
	}
	loaded, err := e.Load(b.Context(), p, runtime.Binding{Folders: folders})
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

// calls are the calls that are measured.
func calls(b *testing.B) map[string]struct {
	pkg  *tool.Package
	tool string
	args string
} {
	n := notes(b)
	return map[string]struct {
		pkg  *tool.Package
		tool string
		args string
	}{
		"small":            {small(), "hello", `{}`},
		"notes/list_notes": {n, "list_notes", `{}`},
		"notes/dry add":    {n, "add_note", `{"title":"t","body":"b"}`},
	}
}

func BenchmarkEngine(b *testing.B) {
	for name, c := range calls(b) {
		b.Run(name, func(b *testing.B) {
			p := load(b, c.pkg)
			b.ReportAllocs()
			for b.Loop() {
				r := p.Call(b.Context(), runtime.Request{Tool: c.tool, Arguments: []byte(c.args), DryRun: true})
				if r.Outcome != runtime.OK {
					b.Fatal(r.Outcome, r.Err)
				}
			}
		})
	}
}

func BenchmarkMCP(b *testing.B) {
	for name, c := range calls(b) {
		if c.tool == "add_note" {
			continue // the file would grow with each call
		}
		b.Run(name, func(b *testing.B) {
			s, err := mcpserver.New(mcpserver.Options{Packages: mcpserver.Packages(load(b, c.pkg)), Version: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			client, err := s.Connect(b.Context(), "")
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Call(b.Context(), c.tool, []byte(c.args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
