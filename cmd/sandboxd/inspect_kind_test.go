package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// TestInspectLoadsReactors: what a reactor's instances are is told as calls will find them, also
// where its manifest lists the tools.
func TestInspectLoadsReactors(t *testing.T) {
	dir := t.TempDir()
	module := w.Module{
		Funcs: []w.Func{
			{Import: "wasi_snapshot_preview1", Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
			{Name: "_initialize", Body: w.Seq(w.I32Const(64), w.I32Const(1), w.Call(0), w.Drop)},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(64<<32 | 1)},
		},
		Memory: [2]uint32{1, 0},
	}.Encode()
	must(t, os.WriteFile(filepath.Join(dir, "draws.wasm"), module, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tool.yaml"),
		[]byte("name: draws\nmodule: draws.wasm\nabi: reactor\ntools: [{name: t, inputSchema: {type: object}}]\n"), 0o600))
	code, out, diag := newShell(t).run("inspect", dir)
	if code != 0 || !strings.Contains(out, "  instances   new: ") || !strings.Contains(out, "random (") {
		t.Errorf("status %d, %s%s", code, out, diag)
	}
}
