package tool

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const withFiles = small + "files: script\nargs: [-I, /package/main.py, \"\", -I]\nreseeds: true\n"

func TestLoadFiles(t *testing.T) {
	dir := folder(t, map[string]string{
		"tool.yaml": withFiles, "a.wasm": emptyModule, "script/main.py": "print(1)", "script/lib/x/y.py": "", "other.py": "no",
	})
	load := func(path string) *Package {
		t.Helper()
		p, err := Load(filepath.Join(dir, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := load("")
	if names := slices.Sorted(maps.Keys(p.Files)); !slices.Equal(names, []string{"lib/x/y.py", "main.py"}) || string(p.Files["main.py"]) != "print(1)" {
		t.Errorf("files %q", p.Files)
	}
	m := p.Manifest
	if !slices.Equal(m.Args, []string{"-I", "/package/main.py", "", "-I"}) || !m.Reseeds || !strings.HasPrefix(p.FilesDigest, "sha256:") {
		t.Errorf("%+v %s", m, p.FilesDigest)
	}
	if q := load("a.wasm"); q.Digest != p.Digest {
		t.Error("another digest by the module's name")
	}
	if err := os.WriteFile(filepath.Join(dir, "script", "main.py"), []byte("print(2)"), 0o600); err != nil {
		t.Fatal(err)
	}
	if q := load(""); q.Digest == p.Digest || q.FilesDigest == p.FilesDigest || q.DefinitionDigest != p.DefinitionDigest || q.ModuleDigest != p.ModuleDigest {
		t.Errorf("another script: %+v", q)
	}
}

func TestFilesFolders(t *testing.T) {
	dir := folder(t, map[string]string{
		"tool.yaml": withFiles, "script/main.py": "", "script/lib/x/y.py": "", "script/lib/z.py": "", "none/tool.yaml": small, "bad/tool.yaml": "files: [",
	})
	var want []string
	for _, name := range []string{"script", "script/lib/x", "script/lib"} {
		want = append(want, filepath.Join(dir, filepath.FromSlash(name)))
	}
	if got := FilesFolders(dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, other := range []string{"none", "bad", "missing"} {
		if got := FilesFolders(filepath.Join(dir, other)); got != nil {
			t.Errorf("%s: %q", other, got)
		}
	}
}

func TestLoadFilesRefused(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"missing": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "script")) },
		"empty":   func(dir string) error { return os.Remove(filepath.Join(dir, "script", "main.py")) },
		"a file": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "script")), os.WriteFile(filepath.Join(dir, "script"), nil, 0o600))
		},
		"a link":   func(dir string) error { return os.Symlink("main.py", filepath.Join(dir, "script", "link.py")) },
		"out":      func(dir string) error { return os.Symlink(os.TempDir(), filepath.Join(dir, "script", "out")) },
		"too much": func(dir string) error { return os.Truncate(filepath.Join(dir, "script", "main.py"), maxPackageBytes+1) },
		"deep": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "script", strings.Repeat("d/", maxPackageDepth)), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"tool.yaml": withFiles, "a.wasm": emptyModule, "script/main.py": "1"})
			if err := spoil(dir); err != nil {
				t.Skip(err)
			}
			_, err := Load(dir, nil)
			me, ok := errors.AsType[*ManifestError](err)
			if !ok || me.Field != "files" || me.Line != 5 || !errors.Is(err, ErrFiles) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What has no files and no arguments has the form and the digest of before.
func TestDigestFilesYounger(t *testing.T) {
	plain := string(canonicalOf(t, small))
	if strings.Contains(plain, "args") || strings.Contains(plain, "reseeds") || string(canonicalOf(t, small+"args: []\nreseeds: false\n")) != plain {
		t.Error(plain)
	}
	for _, more := range []string{"args: [a]\n", "args: [a, b]\n", "args: [b, a]\n", "args: ['']\n", "reseeds: true\n"} {
		if string(canonicalOf(t, small+more)) == plain {
			t.Errorf("%s changes nothing", more)
		}
	}
}

// Trees that differ have digests that differ.
func TestFilesDigest(t *testing.T) {
	trees := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "a/b", "a b", "sha256:00 a"}), rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "x", "a", "b\n"}).Draw(t, "content")
	}), 1, 3)
	bytesOf := func(tree map[string]string) map[string][]byte {
		files := map[string][]byte{}
		for name, s := range tree {
			files[name] = []byte(s)
		}
		return files
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := trees.Draw(t, "a"), trees.Draw(t, "b")
		if (filesDigest(bytesOf(a)) == filesDigest(bytesOf(b))) != maps.Equal(a, b) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

func TestManifestFilesErrors(t *testing.T) {
	for doc, field := range map[string]string{
		"files: .\n":          "files",
		"files: ../x\n":       "files",
		"files: /x\n":         "files",
		"args: [1]\n":         "args[0]",
		"args: [\"a\\0b\"]\n": "args[0]",
		"args: [\"a\\nb\"]\n": "args[0]",
		"args: [" + strings.Repeat("a", maxArg+1) + "]\n":     "args[0]",
		"args: [" + strings.Repeat("a,", maxRequest) + "a]\n": "args",
		"reseeds: yes\n": "reseeds",
		"files: f\nrequests: {volumes: [{name: v, path: /package}]}\n":   "requests.volumes[0].path",
		"files: f\nrequests: {volumes: [{name: v, path: /package/x}]}\n": "requests.volumes[0].path",
	} {
		_, err := ParseManifest("tool.yaml", []byte(small+doc))
		if me, ok := errors.AsType[*ManifestError](err); !ok || me.Field != field {
			t.Errorf("%s: %v, want an error of %s", doc, err, field)
		}
	}
	if _, err := ParseManifest("tool.yaml", []byte(small+"requests: {volumes: [{name: v, path: /package}]}\n")); err != nil {
		t.Errorf("without files: %v", err)
	}
	if _, err := ParseManifest("tool.yaml", []byte("name: a\nmodule: a.wasm\nabi: reactor\nreseeds: true\n")); err == nil {
		t.Error("a reactor may promise what a program may")
	}
}
