package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// Where a test guest keeps things in its memory.
const (
	atFD     = 8
	atIovec  = 16
	atResult = 32
	atPath   = 1024
	atText   = 2048
)

const guestText = "said by the guest"

var wasiImports = []w.Func{
	{Import: "wasi_snapshot_preview1", Name: "path_open", Params: []byte{w.I32, w.I32, w.I32, w.I32, w.I32, w.I64, w.I64, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "fd_write", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "wasi_snapshot_preview1", Name: "proc_exit", Params: []byte{w.I32}},
}

// create makes the file at atPath below the first volume.
func create() []byte {
	const rightWrite, oflagCreate = 1 << 6, 1
	return w.Seq(w.I32Const(3), w.I32Const(0), w.I32Const(atPath), w.I32Const(int32(len("new.txt"))), w.I32Const(oflagCreate),
		w.I64Const(rightWrite), w.I64Const(rightWrite), w.I32Const(0), w.I32Const(atFD), w.Call(0), w.Drop)
}

// say writes guestText to a descriptor.
func say(fd int32) []byte {
	store := func(at, v int32) []byte { return w.Seq(w.I32Const(at), w.I32Const(v), []byte{0x36, 2, 0}) }
	return w.Seq(store(atIovec, atText), store(atIovec+4, int32(len(guestText))),
		w.I32Const(fd), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(1), w.Drop)
}

func exit(code int32) []byte { return w.Seq(w.I32Const(code), w.Call(2)) }

// trap is unreachable.
func trap() []byte { return []byte{0x00} }

// forever is loop br 0 end.
func forever() []byte { return []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} }

// guest assembles a command that does the given things.
func guest(parts ...[]byte) []byte {
	return w.Module{
		Funcs:  append(append([]w.Func{}, wasiImports...), w.Func{Name: "_start", Body: w.Seq(parts...)}),
		Memory: [2]uint32{1, 2},
		Data:   map[uint32][]byte{atPath: []byte("new.txt"), atText: []byte(guestText)},
	}.Encode()
}

// manifest declares one module under several claims.
const manifest = `name: demo
version: 1.0.0
module: demo.wasm
abi: command
tools:
  - name: save
    title: Save
    description: Makes a file.
    inputSchema: {type: object}
    annotations: {destructiveHint: false, idempotentHint: true, openWorldHint: false}
  - name: look
    title: Look
    description: Says that it reads.
    inputSchema: {type: object}
    annotations: {readOnlyHint: true}
requests:
  volumes: [{name: data, path: /data, access: write}]
limits: {timeout: 1s}
`

// newPackage lays out a package and returns its folder.
func newPackage(t *testing.T, module []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{"tool.yaml": []byte(manifest), "demo.wasm": module} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs the program in folders of its own.
type shell struct {
	t            *testing.T
	state, cache string
	stdin        string
	env          []string
}

// sharedCache keeps what the tests compile, for all of them.
var sharedCache string

// asProgram is the variable that makes the test binary the program.
const asProgram = "SANDBOXD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	dir, err := os.MkdirTemp("", "sandboxd-cli-")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func newShell(t *testing.T) *shell {
	t.Helper()
	t.Setenv("COLUMNS", "80") // the width of help texts
	return &shell{t: t, state: filepath.Join(t.TempDir(), "state"), cache: sharedCache}
}

func (s *shell) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return s.runContext(s.t.Context(), args...)
}

func (s *shell) runContext(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, diag bytes.Buffer
	args = append([]string{"--state", s.state, "--cache", s.cache}, args...)
	code = run(ctx, args, strings.NewReader(s.stdin), &out, &diag, s.env)
	return code, out.String(), diag.String()
}
