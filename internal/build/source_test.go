package build

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// TestSourceReachesNothingElse: a source is its files. It cannot have other
// files of the host compiled in, by a link or by its go.mod.
func TestSourceReachesNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	outside := t.TempDir()
	put(t, filepath.Join(outside, "go.mod"), "module secret.example/private\n\ngo 1.26\n")
	put(t, filepath.Join(outside, "keys.go"), "package private\n\nconst Key = \"hunter2\"\n")
	program := "package main\n\nfunc main() { println(\"hello\") }\n"
	const mod = "module example.com/tool\n\ngo 1.26\n"
	for name, lay := range map[string]func(dir string){
		"link to a file": func(dir string) {
			put(t, filepath.Join(dir, "main.go"), program)
			link(t, filepath.Join(outside, "keys.go"), filepath.Join(dir, "keys.go"))
		},
		"link to a device": func(dir string) {
			put(t, filepath.Join(dir, "main.go"), program)
			link(t, "/dev/zero", filepath.Join(dir, "x.h"))
		},
		"link to a folder": func(dir string) {
			put(t, filepath.Join(dir, "main.go"), program)
			link(t, outside, filepath.Join(dir, "sub"))
		},
		"replace": func(dir string) {
			put(t, filepath.Join(dir, "go.mod"), mod+"\nrequire secret.example/private v0.0.0\n\nreplace secret.example/private => "+outside+"\n")
			put(t, filepath.Join(dir, "main.go"), "package main\n\nimport \"secret.example/private\"\n\nfunc main() { println(private.Key) }\n")
		},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "go.mod"), mod)
		lay(dir)
		b, err := New(Options{Cache: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Build(t.Context(), dir, tool.Source{Language: "go", Dir: "."}, tool.Command); !errors.Is(err, ErrSource) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSourceFetchesNothing: what go.mod requires is not downloaded, and no
// other toolchain either.
func TestSourceFetchesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	for name, mod := range map[string]string{
		"module":    "module example.com/tool\n\ngo 1.26\n\nrequire absent.example/beacon v1.0.0\n",
		"toolchain": "module example.com/tool\n\ngo 1.999\n",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "go.mod"), mod)
		put(t, filepath.Join(dir, "main.go"), "package main\n\nimport _ \"absent.example/beacon\"\n\nfunc main() {}\n")
		b, err := New(Options{Cache: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Build(t.Context(), dir, tool.Source{Language: "go", Dir: "."}, tool.Command)
		if _, ok := errors.AsType[*CompileError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, at string) {
	t.Helper()
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}
