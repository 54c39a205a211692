package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// Where a test guest keeps things in its memory.
const (
	atFD     = 8
	atIovec  = 16
	atResult = 32
	atPath   = 1024
	atText   = 2048
)

// Indices of the functions that a test guest imports.
const (
	pathOpen = iota
	fdWrite
	procExit
	pathMkdir
	sockShutdown
	imports
)

var wasiImports = []w.Func{
	{Import: "wasi_snapshot_preview1", Name: "path_open", Params: []byte{w.I32, w.I32, w.I32, w.I32, w.I32, w.I64, w.I64, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "fd_write", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "proc_exit", Params: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "path_create_directory", Params: []byte{w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "sock_shutdown", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
}

const (
	rightRead   = 1 << 1
	rightWrite  = 1 << 6
	oflagCreate = 1
	oflagTrunc  = 8
)

// open opens the path at atPath below the first volume and keeps the
// descriptor; the errno is dropped.
func open(path string, oflags int32, rights int64) []byte {
	return w.Seq(
		w.I32Const(3), w.I32Const(1), w.I32Const(atPath), w.I32Const(int32(len(path))), w.I32Const(oflags),
		w.I64Const(rights), w.I64Const(rights), w.I32Const(0), w.I32Const(atFD), w.Call(pathOpen), w.Drop)
}

// write writes n bytes from atText to a descriptor: a number, or the one that
// open kept.
func write(fd int32, n int32) []byte {
	descriptor := w.I32Const(fd)
	if fd < 0 {
		descriptor = w.Seq(w.I32Const(atFD), []byte{0x28, 2, 0}) // i32.load
	}
	return w.Seq(
		storeI32(atIovec, atText), storeI32(atIovec+4, n),
		descriptor, w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(fdWrite), w.Drop)
}

func storeI32(at, v int32) []byte {
	return w.Seq(w.I32Const(at), w.I32Const(v), []byte{0x36, 2, 0}) // i32.store
}

func exit(status int32) []byte { return w.Seq(w.I32Const(status), w.Call(procExit)) }

func mkdir(path string) []byte {
	return w.Seq(w.I32Const(3), w.I32Const(atPath), w.I32Const(int32(len(path))), w.Call(pathMkdir), w.Drop)
}

// command assembles a command guest with one path and one text in its memory.
func command(path, text string, body []byte, more ...w.Func) []byte {
	m := w.Module{
		Funcs:  append(append([]w.Func{}, wasiImports...), w.Func{Name: "_start", Body: body}),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte(path), atText: []byte(text)},
	}
	m.Funcs = append(m.Funcs, more...)
	return m.Encode()
}

var (
	readOnly = capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}
	writer   = capabilities.Claim{OpenWorld: capabilities.False}
)

// pack returns a package of one tool, named "t", with one volume at /data.
func pack(module []byte, abi tool.ABI, claim capabilities.Claim) *tool.Package {
	return &tool.Package{
		Module: module,
		Manifest: tool.Manifest{
			Name: "p", ABI: abi,
			Tools:    []tool.Definition{{Name: "t", InputSchema: []byte(`{"type":"object"}`), Claim: claim}},
			Requests: tool.Requests{Volumes: []tool.VolumeRequest{{Name: "data", Path: "/data"}}},
			Limits:   tool.Limits{Memory: 16 << 20, Timeout: 5 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 100},
		},
	}
}

// newEngine returns an engine that the test closes, with a state folder.
func newEngine(t testing.TB, o Observer) *Engine {
	t.Helper()
	e, err := New(context.Background(), Options{Store: memstore.New(), State: t.TempDir(), Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// load loads a package over a folder with one file, "old", and returns both.
func load(t testing.TB, e *Engine, p *tool.Package) (*Package, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, err := e.Load(context.Background(), p, Binding{Folders: map[string]string{"data": dir}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded, dir
}

// untouched fails the test unless the folder is as load made it.
func untouched(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "old" {
		t.Errorf("folder holds %v, want old alone", entries)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "old")); err != nil || !bytes.Equal(b, []byte("old content\n")) {
		t.Errorf("old holds %q, %v", b, err)
	}
}

// textOf returns the first text of a result.
func textOf(t testing.TB, r *Result) string {
	t.Helper()
	var c struct{ Text string }
	if len(r.Output.Content) == 0 {
		t.Fatalf("no content: %+v", r.Output)
	}
	if err := json.Unmarshal(r.Output.Content[0], &c); err != nil {
		t.Fatal(err)
	}
	return c.Text
}
