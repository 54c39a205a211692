package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// counted is a go command that writes down its steps, and says that it is another
// version where a file is beside it.
type counted struct{ command, log, other string }

func countedGo(t *testing.T) counted {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("shell script")
	}
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := counted{filepath.Join(dir, "go"), filepath.Join(dir, "log"), filepath.Join(dir, "other")}
	put(t, c.command, "#!/bin/sh\necho \"$1\" >> '"+c.log+"'\n"+
		"if [ \"$1\" = env ] && [ -e '"+c.other+"' ]; then '"+real+"' \"$@\" | sed 's/\"GOVERSION\": \"go/&9/'; exit; fi\nexec '"+real+"' \"$@\"\n")
	if err := os.Chmod(c.command, 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

// steps returns what was asked since it was last called.
func (c counted) steps(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	put(t, c.log, "")
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestKnownSource: a source that was built is found again without asking for its
// files. Whatever changes, of what the files are chosen by or what is in them, has
// them asked for again, and gives what a builder that knows nothing makes of it.
func TestKnownSource(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	t.Setenv("GOFLAGS", "")
	command, cache := countedGo(t), t.TempDir()
	clone := sdkClone(t, "sdk")
	files := usesSDK(clone)
	files["main.go"] = "package main\n\nimport (\n\t_ \"embed\"\n\n\t\"github.com/sandboxd/sandboxd/guests/sdk\"\n)\n\n" +
		"//go:embed data\nvar data string\n\nfunc main() { println(data); sdk.Main() }\n"
	files["data"] = "one"
	dir := tree(t, t.TempDir(), files)
	build := func(abi tool.ABI) []byte {
		t.Helper()
		module, err := builder(t, Options{Cache: cache, Go: command.command}).Build(t.Context(), dir, inPlace, abi)
		if err != nil {
			t.Fatal(err)
		}
		return module
	}
	build(tool.Command)
	asked := func() bool { return strings.Contains(command.steps(t), "list") }
	if !asked() {
		t.Fatal("a source that was never seen was not asked about")
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T)
	}{
		{"file", func(t *testing.T) { put(t, filepath.Join(dir, "main.go"), files["main.go"]+"\nvar more = 1\n") }},
		{"embedded file", func(t *testing.T) { put(t, filepath.Join(dir, "data"), "two") }},
		{"further file", func(t *testing.T) {
			put(t, filepath.Join(dir, "init.go"), "package main\n\nfunc init() { println(3) }\n")
		}},
		{"no further file, one for a tag", func(t *testing.T) {
			remove(t, filepath.Join(dir, "init.go"))
			put(t, filepath.Join(dir, "tag.go"), "//go:build loud\n\npackage main\n\nfunc init() { println(4) }\n")
		}},
		{"tag", func(t *testing.T) { t.Setenv("GOFLAGS", "-tags=loud") }},
		{"go.mod", func(t *testing.T) { put(t, filepath.Join(dir, "go.mod"), files["go.mod"]+"\n// changed\n") }},
		{"go.sum", func(t *testing.T) { put(t, filepath.Join(dir, "go.sum"), "") }},
		{"SDK", func(t *testing.T) {
			put(t, filepath.Join(clone, "guests", "wasi", "wasi.go"), "package wasi\n\nconst Text = \"other\"\n")
		}},
		{"version", func(t *testing.T) { put(t, command.other, "") }},
	} {
		c.change(t)
		got := build(tool.Command)
		if !asked() {
			t.Errorf("%s: not asked about again", c.name)
		}
		want, err := builder(t, Options{}).Build(t.Context(), dir, inPlace, tool.Command)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another module than without a cache, %v", c.name, err)
		}
		if again := build(tool.Command); !bytes.Equal(again, got) {
			t.Errorf("%s: the second time another module", c.name)
		}
		if steps := command.steps(t); strings.Contains(steps, "list") || strings.Contains(steps, "build") {
			t.Errorf("%s: the second time: %s", c.name, steps)
		}
	}
	if build(tool.Reactor); !asked() {
		t.Error("another ABI was not asked about")
	}
}

// TestKnownSourceBroken: what is wrong with the cache has the source asked about
// again, and mended.
func TestKnownSourceBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	command, cache := countedGo(t), t.TempDir()
	dir := tree(t, t.TempDir(), goSource(says("text")))
	build := func() string {
		t.Helper()
		module, err := builder(t, Options{Cache: cache, Go: command.command}).Build(t.Context(), dir, inPlace, tool.Command)
		if err != nil || !bytes.Contains(module, []byte("text")) {
			t.Fatalf("%d bytes, %v", len(module), err)
		}
		return command.steps(t)
	}
	build()
	one := func(pattern string) string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(cache, "build", pattern))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		return list[0]
	}
	for name, damage := range map[string]func(){
		"answer gone":         func() { remove(t, one("*.is")) },
		"answer empty":        func() { put(t, one("*.is"), "") },
		"answer a path":       func() { put(t, one("*.is"), strings.Repeat("../", 20)+"..xx") },
		"answer of no module": func() { put(t, one("*.is"), strings.Repeat("0", 64)) },
		"module gone":         func() { remove(t, one("*.wasm")) },
		"module is none":      func() { put(t, one("*.wasm"), "") },
	} {
		damage()
		if steps := build(); !strings.Contains(steps, "list") {
			t.Errorf("%s: not asked about again: %s", name, steps)
		}
		if steps := build(); strings.Contains(steps, "list") {
			t.Errorf("%s: not mended: %s", name, steps)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	must(t, os.Remove(path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestModuleCacheIsAsked: files that were not copied are asked about each time.
func TestModuleCacheIsAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	modules := t.TempDir()
	t.Setenv("GOMODCACHE", modules)
	t.Setenv("GOFLAGS", "")
	mod := "module example.com/dep\n\ngo 1.24\n"
	text := func(s string) string { return "package dep\n\nconst Text = \"" + s + "\"\n" }
	sum := func(name, text string) string {
		h := sha256.Sum256(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte(text)), name))
		return "h1:" + base64.StdEncoding.EncodeToString(h[:])
	}
	zip := sum("any", "")
	tree(t, modules, map[string]string{
		"example.com/dep@v1.0.0/go.mod":                    mod,
		"example.com/dep@v1.0.0/dep.go":                    text("DEP-ONE"),
		"cache/download/example.com/dep/@v/v1.0.0.mod":     mod,
		"cache/download/example.com/dep/@v/v1.0.0.info":    `{"Version":"v1.0.0"}`,
		"cache/download/example.com/dep/@v/v1.0.0.zip":     "",
		"cache/download/example.com/dep/@v/v1.0.0.ziphash": zip,
	})
	dir := tree(t, t.TempDir(), map[string]string{
		"go.mod":  "module example.com/x\n\ngo 1.24\n\nrequire example.com/dep v1.0.0\n",
		"go.sum":  "example.com/dep v1.0.0 " + zip + "\nexample.com/dep v1.0.0/go.mod " + sum("go.mod", mod) + "\n",
		"main.go": "package main\n\nimport \"example.com/dep\"\n\nfunc main() { println(dep.Text) }\n",
	})
	command, cache := countedGo(t), t.TempDir()
	for _, want := range []string{"DEP-ONE", "DEP-ONE", "DEP-TWO"} {
		put(t, filepath.Join(modules, "example.com/dep@v1.0.0/dep.go"), text(want))
		module, err := builder(t, Options{Cache: cache, Go: command.command}).Build(t.Context(), dir, inPlace, tool.Command)
		if err != nil || !bytes.Contains(module, []byte(want)) {
			t.Errorf("%s is not in the module, %v", want, err)
		}
		if steps := command.steps(t); !strings.Contains(steps, "list") {
			t.Errorf("not asked: %s", steps)
		}
	}
}
