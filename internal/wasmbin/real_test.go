package wasmbin

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// wazeroModules returns the modules that come with wazero's source, or none
// where there is no such source.
func wazeroModules(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return nil
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".wasm" {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// beyond reports whether a module of wazero's tests is one that Rewrite refuses
// though wazero takes it: of a proposal after 2.0, or with a prefixed
// instruction in a longer form than needed.
func beyond(file string) bool {
	for _, part := range []string{"typed-function-references", "exception-handling", "tail-call", "threads", "binary-leb128.81.wasm"} {
		if strings.Contains(filepath.ToSlash(file), part) {
			return true
		}
	}
	return false
}

// TestWazeroModules reads and rewrites every module of wazero's own tests that
// wazero accepts under WebAssembly 2.0.
func TestWazeroModules(t *testing.T) {
	files := wazeroModules(t)
	if len(files) == 0 {
		t.Skip("no source of wazero")
	}
	accepted := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if beyond(file) || testing.Short() && len(b) > 100_000 || !valid(t, b) {
			continue
		}
		accepted++
		out, err := Rewrite(b, Options{MaxMemory: 1 << 16, MaxTables: 100, MaxTable: 1 << 27})
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
			continue
		}
		if !valid(t, out.Module) {
			t.Errorf("%s: not valid after Rewrite", filepath.Base(file))
		}
	}
	t.Logf("%d of %d modules are valid", accepted, len(files))
	if accepted < 10 {
		t.Errorf("only %d modules of %d are valid", accepted, len(files))
	}
}

const hello = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func main() {
	defer func() { fmt.Println("recovered:", recover()) }()
	words := strings.Fields(strings.Join(os.Args[1:], " "))
	sort.Strings(words)
	m := map[string]int{}
	for _, w := range words {
		m[w] = fib(len(w))
	}
	json.NewEncoder(os.Stdout).Encode(m)
	done := make(chan int)
	go func() { done <- len(m) }()
	fmt.Println(<-done)
	var list []int
	fmt.Println(list[len(m)])
}
`

// buildGo builds a Go program for wasip1.
func buildGo(t *testing.T, source string, flags ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil || testing.Short() {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "main.go"), filepath.Join(dir, "main.wasm")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", out, file)...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGoProgram runs a Go program as it was built and rewritten: both print the
// same.
func TestGoProgram(t *testing.T) {
	b := buildGo(t, hello)
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if f := m.ExportedFunctions(); len(f) != 1 || f[0].Name != "_start" || m.Functions < 100 || len(m.Memories) != 1 {
		t.Errorf("exports %v, %d functions, memories %v", f, m.Functions, m.Memories)
	}
	for _, im := range m.Imports {
		if im.Module != "wasi_snapshot_preview1" || im.Kind != KindFunc {
			t.Errorf("import %+v", im)
		}
	}
	w, err := Rewrite(b, Options{MaxMemory: 1024, MaxTables: 1, MaxTable: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	want, got := run(t, b), run(t, w.Module)
	if !strings.Contains(want, `"banana":8`) || got != want {
		t.Errorf("rewritten %q, before %q", got, want)
	}
	t.Logf("%d bytes, %d more when rewritten", len(b), len(w.Module)-len(b))
}

func run(t *testing.T, b []byte) string {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	newMeter(quantum).register(t, r)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out bytes.Buffer
	config := wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out).WithArgs("hello", "banana", "apple", "kiwi")
	if _, err := r.InstantiateWithConfig(ctx, b, config); err != nil {
		t.Logf("%v", err)
	}
	return out.String()
}
