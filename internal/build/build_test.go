package build

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/tool"
)

func builder(t *testing.T, o Options) *Builder {
	t.Helper()
	if o.Cache == "" {
		o.Cache = t.TempDir()
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write lays out files in a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func goSource(main string) map[string]string {
	return map[string]string{"go.mod": "module example.com/x\n\ngo 1.24\n", "main.go": main}
}

var inPlace = tool.Source{Language: "go", Dir: "."}

func TestBuildBundledGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	src := t.TempDir()
	if err := guests.Extract(src); err != nil {
		t.Fatal(err)
	}
	before := listing(t, src)
	var progress bytes.Buffer
	b := builder(t, Options{Progress: &progress})
	load := b.Func(t.Context())
	module, err := load(filepath.Join(src, "guests", "notes"), inPlace, tool.Reactor)
	if err != nil {
		t.Fatal(err)
	}
	checkReactor(t, module)
	if after := listing(t, src); !slices.Equal(before, after) {
		t.Errorf("source folder changed: %v, before %v", after, before)
	}

	// The same source elsewhere is the same module, from the cache.
	moved := t.TempDir()
	if err := guests.Extract(moved); err != nil {
		t.Fatal(err)
	}
	again, err := load(filepath.Join(moved, "guests", "notes"), inPlace, tool.Reactor)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(module, again) {
		t.Error("the module differs")
	}
	if n := strings.Count(progress.String(), "\n"); n != 1 {
		t.Errorf("want one build, one line of progress; got:\n%s", progress.String())
	}
}

func checkReactor(t *testing.T, module []byte) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	m, err := rt.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.ImportedFunctions() {
		if from, name, _ := f.Import(); from != "wasi_snapshot_preview1" {
			t.Errorf("imports %s.%s", from, name)
		}
	}
	var exports []string
	for name := range m.ExportedFunctions() {
		exports = append(exports, name)
	}
	slices.Sort(exports)
	want := []string{"_initialize", "sandboxd_alloc", "sandboxd_call", "sandboxd_describe", "sandboxd_reseed"}
	if !slices.Equal(exports, want) {
		t.Errorf("exports %v, want %v", exports, want)
	}
	if len(m.ExportedMemories()) != 1 {
		t.Error("exports no memory")
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCompileError(t *testing.T) {
	dir := write(t, goSource("package main\n\nfunc main() {\n\tundefinedName()\n}\n"))
	_, err := builder(t, Options{}).Build(t.Context(), dir, inPlace, tool.Command)
	ce, ok := errors.AsType[*CompileError](err)
	if !ok {
		t.Fatalf("got %v, want a CompileError", err)
	}
	if want := "main.go:4:2: undefined: undefinedName"; !strings.Contains(ce.Error(), want) {
		t.Errorf("got %q, want it to have %q", ce.Error(), want)
	}
}

func TestCompileErrorText(t *testing.T) {
	e := &CompileError{Dir: "d", Output: "# pkg\n" + strings.Repeat("main.go:1:1: x\n", 12), Err: errors.New("exit status 1")}
	want := "source of d does not build:\n" + strings.Repeat("main.go:1:1: x\n", 10) + "… and 2 more lines"
	if e.Error() != want {
		t.Errorf("got %q, want %q", e.Error(), want)
	}
	e.Output = ""
	if want := "source of d does not build: exit status 1"; e.Error() != want {
		t.Errorf("got %q, want %q", e.Error(), want)
	}
}

// A program that imports the SDK and does not say where it is gets the mend;
// others do not.
func TestMissingSDK(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	for name, c := range map[string]struct {
		mod, path string
		mend      bool
	}{
		"nothing":      {"", "github.com/sandboxd/sandboxd/guests/sdk", true},
		"require only": {"require github.com/sandboxd/sandboxd v0.0.0\n", "github.com/sandboxd/sandboxd/guests/sdk", true},
		"another":      {"", "example.com/other", false},
	} {
		src := goSource("package main\n\nimport _ \"" + c.path + "\"\n\nfunc main() {}\n")
		src["go.mod"] += c.mod
		_, err := builder(t, Options{}).Build(t.Context(), write(t, src), inPlace, tool.Command)
		if _, ok := errors.AsType[*CompileError](err); !ok || strings.Contains(err.Error(), "-replace github.com/sandboxd/sandboxd=/path/to/clone") != c.mend {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A go command that does not work is named.
func TestBrokenGo(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("shell script")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"fails": "#!/bin/sh\necho out of order >&2\nexit 2\n", "no-program": "\x00\x01"} {
		broken := filepath.Join(dir, name)
		if err := os.WriteFile(broken, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := builder(t, Options{Go: broken}).Build(t.Context(), write(t, goSource("package main\n")), inPlace, tool.Command)
		if !errors.Is(err, ErrNoToolchain) || !strings.Contains(err.Error(), broken) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	program := goSource("package main\n\nfunc main() {}\n")
	for name, c := range map[string]struct {
		options Options
		files   map[string]string
		source  tool.Source
		abi     tool.ABI
		is      error
		text    string
	}{
		"language":     {Options{}, program, tool.Source{Language: "cobol"}, tool.Command, ErrLanguage, "want go"},
		"no language":  {Options{}, program, tool.Source{}, tool.Command, nil, "language is missing"},
		"abi":          {Options{}, program, inPlace, "com", nil, `abi "com": unknown`},
		"no go":        {Options{Go: "no-such-go"}, program, inPlace, tool.Command, ErrNoToolchain, "https://go.dev/dl"},
		"no go file":   {Options{Go: "/no/such/go"}, program, inPlace, tool.Command, ErrNoToolchain, "https://go.dev/dl"},
		"no folder":    {Options{}, program, tool.Source{Language: "go", Dir: "src"}, tool.Command, nil, "not found"},
		"no module":    {Options{}, map[string]string{"main.go": "package main"}, inPlace, tool.Command, nil, "go.mod"},
		"not a main":   {Options{}, goSource("package lib\n"), inPlace, tool.Command, nil, "not main"},
		"syntax error": {Options{}, goSource("package main\n\nfunc {\n"), inPlace, tool.Command, nil, "main.go:3:6"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t, c.options)
			_, err := b.Build(t.Context(), write(t, c.files), c.source, c.abi)
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %s", err, c.text)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
		})
	}
}

func TestBuildStopped(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	dir := write(t, goSource("package main\n\nfunc main() {}\n"))
	if _, err := builder(t, Options{}).Build(ctx, dir, inPlace, tool.Command); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
