package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// tree lays out files in folders.
func tree(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, name, text)
	}
	return dir
}

func says(text string) string { return "package main\n\nfunc main() { println(\"" + text + "\") }\n" }

// sdkClone is a folder that passes as a clone of this project.
func sdkClone(t *testing.T, text string) string {
	return tree(t, t.TempDir(), map[string]string{
		"go.mod":               "module github.com/sandboxd/sandboxd\n\ngo 1.24\n",
		"guests/sdk/sdk.go":    "package sdk\n\nimport \"github.com/sandboxd/sandboxd/guests/wasi\"\n\nfunc Main() { println(wasi.Text) }\n",
		"guests/wasi/wasi.go":  "package wasi\n\nconst Text = \"" + text + "\"\n",
		"guests/other/main.go": "package main\n\nimport \"example.com/absent\"\n",
	})
}

func usesSDK(clone string) map[string]string {
	return map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.24\n\nrequire github.com/sandboxd/sandboxd v0.0.0\n\nreplace github.com/sandboxd/sandboxd => " + filepath.ToSlash(clone) + "\n",
		"main.go": "package main\n\nimport \"github.com/sandboxd/sandboxd/guests/sdk\"\n\n" +
			"func main() { sdk.Main() }\n",
	}
}

// before returns a go command that runs a shell command once, when it is called
// for a step of a build.
func before(t *testing.T, step, command string) string {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("shell script")
	}
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "go")
	put(t, script, "#!/bin/sh\nif [ \"$1\" = "+step+" ]; then\n"+command+"\nfi\nexec '"+real+"' \"$@\"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// TestSourceSwapped: an author who swaps a file at any step of a build has what
// is built kept under the source that it was built from. A package with the
// source that was reviewed never gets another.
func TestSourceSwapped(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	const step, benign, evil = "step", "BENIGN", "EVIL"
	for name, lay := range map[string]func(text string) (dir, file string){
		"source": func(text string) (dir, file string) {
			dir = tree(t, t.TempDir(), goSource(says(text)))
			return dir, filepath.Join(dir, "main.go")
		},
		"sdk": func(text string) (dir, file string) {
			clone := sdkClone(t, text)
			return tree(t, t.TempDir(), usesSDK(clone)), filepath.Join(clone, "guests", "wasi", "wasi.go")
		},
	} {
		for _, step := range []string{"env", "mod", "list", "build"} {
			cache := t.TempDir()
			dir, file := lay(benign)
			command := before(t, step, "sed -i.bak s/"+benign+"/"+evil+"/ '"+file+"'; rm -f '"+file+".bak'")
			first, err := builder(t, Options{Cache: cache, Go: command}).Build(t.Context(), dir, inPlace, tool.Command)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(file); err != nil || !bytes.Contains(text, []byte(evil)) {
				t.Fatalf("%s: not swapped at %s: %s, %v", name, step, text, err)
			}
			if step == "build" && !bytes.Contains(first, []byte(benign)) {
				t.Errorf("%s: swapped at %s: built from what was not hashed", name, step)
			}
			victim, _ := lay(benign)
			module, err := builder(t, Options{Cache: cache}).Build(t.Context(), victim, inPlace, tool.Command)
			if err != nil || bytes.Contains(module, []byte(evil)) || !bytes.Contains(module, []byte(benign)) {
				t.Errorf("%s: swapped at %s: the victim's source gives another module; %v", name, step, err)
			}
		}
	}
}

// TestCopyIsPrivate: nobody else looks into the copy, and nothing is left of it.
func TestCopyIsPrivate(t *testing.T) {
	temp, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	t.Setenv("TMPDIR", temp)
	command := before(t, "list", "ls -ld '"+temp+"'/* > '"+seen+"'")
	dir := write(t, goSource(says("hello")))
	for _, source := range []string{dir, write(t, goSource("package main\n\nfunc {\n"))} {
		_, _ = builder(t, Options{Go: command}).Build(t.Context(), source, inPlace, tool.Command)
		if text, err := os.ReadFile(seen); err != nil || !strings.HasPrefix(string(text), "drwx------") {
			t.Errorf("copy %q, %v", text, err)
		}
		if left := listing(t, temp); len(left) != 1 {
			t.Errorf("left %q", left)
		}
	}
}

// TestSameModuleAnywhere: where a source and the project's clone lie is in no
// module, whether or not it comes from the cache.
func TestSameModuleAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	var modules [2][]byte
	for i := range modules {
		dir := tree(t, t.TempDir(), usesSDK(sdkClone(t, "hello")))
		module, err := builder(t, Options{}).Build(t.Context(), dir, inPlace, tool.Command)
		if err != nil {
			t.Fatal(err)
		}
		modules[i] = module
	}
	if !bytes.Equal(modules[0], modules[1]) {
		t.Error("the modules differ")
	}
	if bytes.Contains(modules[0], []byte("sandboxd-build-")) {
		t.Error("the module has a path of the copy")
	}
}

// TestErrorsNameTheAuthorsFiles: what a compiler says of the copy is said of the
// source.
func TestErrorsNameTheAuthorsFiles(t *testing.T) {
	clone := sdkClone(t, "hello")
	put(t, filepath.Join(clone, "guests", "sdk", "sdk.go"), "package sdk\n\nfunc Main() { undefinedName() }\n")
	nested := usesSDK(clone)
	nested["cmd/x/main.go"] = nested["main.go"]
	delete(nested, "main.go")
	absent := filepath.Join(t.TempDir(), "absent")
	for name, c := range map[string]struct {
		files map[string]string
		dir   string
		want  []string
	}{
		"sub package": {map[string]string{
			"go.mod": "module example.com/x\n\ngo 1.24\n", "main.go": "package main\n\nimport \"example.com/x/sub\"\n\nfunc main() { sub.F() }\n",
			"sub/sub.go": "package sub\n\nfunc F() { undefinedName() }\n",
		}, ".", []string{filepath.FromSlash("sub/sub.go:3:12: undefined")}},
		"sdk":             {usesSDK(clone), ".", []string{filepath.Join(clone, "guests/sdk/sdk.go:3:15: undefined")}},
		"sdk from deeper": {nested, "cmd/x", []string{filepath.Join(clone, "guests/sdk/sdk.go:3:15: undefined")}},
		"no clone":        {usesSDK(absent), ".", []string{absent}},
		"go.mod":          {map[string]string{"go.mod": "module example.com/x\n\nnonsense\n", "main.go": says("x")}, ".", []string{"go.mod:3"}},
		"syntax":          {goSource("package main\n\nfunc {\n"), ".", []string{"main.go:3:6"}},
	} {
		dir := tree(t, t.TempDir(), c.files)
		_, err := builder(t, Options{}).Build(t.Context(), dir, tool.Source{Language: "go", Dir: c.dir}, tool.Command)
		if _, ok := errors.AsType[*CompileError](err); !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range append(c.want, dir) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		for _, private := range []string{"sandboxd-build-", "replaced-"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("%s: names the copy: %v", name, err)
			}
		}
	}
}
