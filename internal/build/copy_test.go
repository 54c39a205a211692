package build

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

const exampleMod = "module example.com/x\n\ngo 1.24\n"

// TestCopyIsComplete builds sources of every shape that the go command takes.
func TestCopyIsComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	embed := func(pattern string) string {
		return "package main\n\nimport \"embed\"\n\n//go:embed " + pattern + "\nvar files embed.FS\n\nfunc main() { _, err := files.Open(\".\"); println(err) }\n"
	}
	uses := "package main\n\nimport \"lib.example/lib\"\n\nfunc main() { println(lib.Text) }\n"
	const requires, lib = exampleMod + "\nrequire lib.example/lib v0.0.0\n", "package lib\n\nconst Text = \"MARK\"\n"
	outside := tree(t, t.TempDir(), map[string]string{"go.mod": "module lib.example/lib\n", "lib.go": lib})
	absolute := t.TempDir()
	for name, c := range map[string]struct {
		dir    string // where the source's module is; empty: a new folder
		files  map[string]string
		source string
	}{
		"one file":      {"", goSource(says("MARK")), "."},
		"outer module":  {"", map[string]string{"go.mod": exampleMod, "tools/a/main.go": "package main\n\nimport \"example.com/x/lib\"\n\nfunc main() { println(lib.Text) }\n", "lib/lib.go": lib, "other/b.go": "package other\n\nimport \"example.com/absent\"\n"}, "tools/a"},
		"embedded":      {"", map[string]string{"go.mod": exampleMod, "main.go": embed("data"), "data/a/b.txt": "MARK"}, "."},
		"all hidden":    {"", map[string]string{"go.mod": exampleMod, "main.go": embed("all:data"), "data/.well-known/b.txt": "MARK"}, "."},
		"hidden by *":   {"", map[string]string{"go.mod": exampleMod, "main.go": embed("data/*"), "data/.b.txt": "MARK"}, "."},
		"test data":     {"", map[string]string{"go.mod": exampleMod, "main.go": embed("a_test.go"), "a_test.go": "package main // MARK\n"}, "."},
		"folder beside": {"", map[string]string{"go.mod": requires + "replace lib.example/lib => ./third/lib\n", "main.go": uses, "third/lib/go.mod": "module lib.example/lib\n", "third/lib/lib.go": lib}, "."},
		"absolute":      {absolute, map[string]string{"go.mod": requires + "replace lib.example/lib => " + filepath.ToSlash(absolute) + "/third/lib\n", "main.go": uses, "third/lib/go.mod": "module lib.example/lib\n", "third/lib/lib.go": lib}, "."},
		"vendored": {"", map[string]string{
			"go.mod": requires + "replace lib.example/lib => " + filepath.ToSlash(outside) + "\n", "main.go": uses,
			"vendor/modules.txt":            "# lib.example/lib v0.0.0 => " + filepath.ToSlash(outside) + "\n## explicit\nlib.example/lib\n# lib.example/lib => " + filepath.ToSlash(outside) + "\n",
			"vendor/lib.example/lib/lib.go": lib,
		}, "."},
		"replaced and not used": {"", map[string]string{"go.mod": requires + "replace lib.example/lib => " + filepath.ToSlash(outside) + "\n", "main.go": says("MARK")}, "."},
		"assembly": {"", map[string]string{
			"go.mod": exampleMod, "main.go": "package main\n\nfunc f()\n\nfunc main() { println(\"MARK\"); f() }\n",
			"f.s": "// What to include is said here.\n#include \"textflag.h\"\n#include \"own.h\"\n\nTEXT ·f(SB), NOSPLIT, $0\n\tRET\n", "own.h": "#define X 1\n",
		}, "."},
	} {
		if c.dir == "" {
			c.dir = t.TempDir()
		}
		tree(t, c.dir, c.files)
		module, err := builder(t, Options{}).Build(t.Context(), c.dir, tool.Source{Language: "go", Dir: c.source}, tool.Command)
		if err != nil || !bytes.Contains(module, []byte("MARK")) {
			t.Errorf("%s: %d bytes, %v", name, len(module), err)
		}
	}
}

// TestCopyRefuses has sources that reach out of their module in ways that only a
// toolchain finds.
func TestCopyRefuses(t *testing.T) {
	secret := tree(t, t.TempDir(), map[string]string{"go.mod": "module secret.example/private\n", "guests/sdk/sdk.go": "package sdk\n\nfunc Main() {}\n"})
	pkg := map[string]string{"go.mod": exampleMod, "tools/a/main.go": "package main\n\nimport _ \"example.com/x/lib\"\n\nfunc main() {}\n"}
	assembly := func(text string) map[string]string {
		return map[string]string{"go.mod": exampleMod, "main.go": "package main\n\nfunc f()\n\nfunc main() { f() }\n", "f.s": text + "\n\nTEXT ·f(SB), 4, $0\n\tRET\n"}
	}
	for name, c := range map[string]struct {
		files  map[string]string
		source string
		links  map[string]string
	}{
		"another module as the project":   {usesSDK(secret), ".", nil},
		"package of the module is a link": {pkg, "tools/a", map[string]string{"lib": filepath.Join(secret, "guests", "sdk")}},
		"file of the module is a link":    {pkg, "tools/a", map[string]string{"lib/lib.go": filepath.Join(secret, "guests", "sdk", "sdk.go")}},
		"go.mod is a link":                {map[string]string{"tools/a/main.go": says("x")}, "tools/a", map[string]string{"go.mod": filepath.Join(secret, "go.mod")}},
		"assembly includes by path":       {assembly("#include \"/etc/passwd\""), ".", nil},
		"assembly hides an include":       {assembly("# /* */ include \"\\x2fetc/passwd\""), ".", nil},
		"assembly ends a comment":         {assembly("/*\n//*/ #include \"../x.h\""), ".", nil},
		"source is a link":                {goSource(says("x")), "src", map[string]string{"src": secret}},
		"link on the way to the source":   {goSource(says("x")), "way/guests/sdk", map[string]string{"way": secret}},
		"outside of the package":          {goSource(says("x")), "../x", nil},
	} {
		dir := tree(t, t.TempDir(), c.files)
		for at, target := range c.links {
			at = filepath.Join(dir, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			link(t, target, at)
		}
		_, err := builder(t, Options{}).Build(t.Context(), dir, tool.Source{Language: "go", Dir: c.source}, tool.Command)
		if !errors.Is(err, ErrSource) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
