package runtime

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

// benchGuests are the modules that calls are measured on.
func benchGuests(b *testing.B) map[string]*tool.Package {
	b.Helper()
	module, err := draws()
	if err != nil {
		b.Fatalf("%v\n%s", err, module)
	}
	out := filepath.Join(b.TempDir(), "hello.wasm")
	source := filepath.Join(b.TempDir(), "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\") }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, source)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	command, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	goReactor := pack(module, tool.Reactor, readOnly)
	goReactor.Manifest.Tools[0].Name = "count"
	goReactor.Manifest.Limits.Memory = 64 << 20
	goCommand := pack(command, tool.Command, readOnly)
	goCommand.Manifest.Limits.Memory = 64 << 20
	return map[string]*tool.Package{
		"minimal reactor": pack(reactor(nil, false), tool.Reactor, readOnly),
		"Go command":      goCommand,
		"Go reactor":      goReactor,
	}
}

// BenchmarkCall measures calls of the engine by strategy, with the median.
func BenchmarkCall(b *testing.B) {
	for name, p := range benchGuests(b) {
		for _, s := range strategies {
			b.Run(name+"/"+string(s), func(b *testing.B) {
				ctx := context.Background()
				e, err := New(ctx, Options{Store: memstore.New(), Strategy: s, Cache: compiled()})
				if err != nil {
					b.Fatal(err)
				}
				loaded := mustLoad(b, e, p, Binding{})
				took := make([]time.Duration, 0, b.N)
				b.ReportAllocs()
				for b.Loop() {
					began := time.Now()
					if r := loaded.Call(ctx, Request{Tool: p.Manifest.Tools[0].Name}); r.Outcome != OK {
						b.Fatal(r.Err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
				if err := errors.Join(loaded.Close(ctx), e.Close(ctx)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
