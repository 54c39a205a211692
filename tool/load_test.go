package tool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/internal/wasmbin"
)

const emptyModule = "\x00asm\x01\x00\x00\x00"

// withSection returns a module that holds a custom section "tool.yaml".
func withSection(docs ...string) string {
	b := []byte(emptyModule)
	for _, doc := range docs {
		body := append([]byte{byte(len(manifestName))}, manifestName+doc...)
		b = append(b, 0, byte(len(body)&0x7f|0x80), byte(len(body)>>7))
		b = append(b, body...)
	}
	return string(b)
}

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	dir := folder(t, map[string]string{
		"tool.yaml": small, "a.wasm": emptyModule,
		"sub/tool.yaml": strings.Replace(small, "a.wasm", "bin/a.wasm", 1), "sub/bin/a.wasm": emptyModule,
		"in/b.wasm": withSection(small),
	})
	var digests []string
	for _, path := range []string{"", "a.wasm", "sub", "in/b.wasm"} {
		p, err := Load(filepath.Join(dir, filepath.FromSlash(path)), nil)
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		if p.Manifest.Name != "a" || len(p.Module) == 0 || p.Dir == "" || !strings.HasPrefix(p.Digest, "sha256:") {
			t.Errorf("%q: %+v", path, p)
		}
		digests = append(digests, p.DefinitionDigest, p.Digest)
	}
	if digests[0] != digests[6] || digests[1] != digests[3] || digests[1] != digests[5] || digests[1] == digests[7] {
		t.Errorf("digests %q", digests)
	}
}

func TestLoadInsideAndBeside(t *testing.T) {
	other := strings.Replace(small, "name: t,", "name: u,", 1)
	for _, tt := range []struct {
		name           string
		beside, inside string
		want           string
	}{
		{"equal", small, small + "# comment\n", "t"},
		{"different", small, other, ""},
		{"for another module", strings.Replace(small, "a.wasm", "b.wasm", 1), other, "u"},
		{"broken beside", "name: [", small, ""},
		{"broken inside", small, "name: [", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"tool.yaml": tt.beside, "a.wasm": withSection(tt.inside)})
			p, err := Load(filepath.Join(dir, "a.wasm"), nil)
			if tt.want == "" {
				if err == nil {
					t.Fatal("accepted")
				}
				return
			}
			if err != nil || p.Manifest.Tools[0].Name != tt.want || p.Manifest.Module != "a.wasm" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestLoadError(t *testing.T) {
	component := "\x00asm\x0d\x00\x01\x00"
	for _, tt := range []struct {
		name  string
		files map[string]string
		path  string
		want  error
	}{
		{"nothing there", nil, "x", fs.ErrNotExist},
		{"no manifest", nil, "", fs.ErrNotExist},
		{"no module", map[string]string{"tool.yaml": small}, "", fs.ErrNotExist},
		{"no module is a module error", map[string]string{"tool.yaml": small}, "", ErrModule},
		{"no manifest for a module", map[string]string{"a.wasm": emptyModule}, "a.wasm", nil},
		{"component", map[string]string{"tool.yaml": small, "a.wasm": component}, "", wasmbin.ErrComponent},
		{"component alone", map[string]string{"a.wasm": component}, "a.wasm", ErrModule},
		{"not a module", map[string]string{"tool.yaml": small, "a.wasm": "#!/bin/sh"}, "", wasmbin.ErrFormat},
		{"empty module", map[string]string{"tool.yaml": small, "a.wasm": ""}, "", ErrModule},
		{"other module", map[string]string{"tool.yaml": small, "b.wasm": emptyModule}, "b.wasm", nil},
		{"other file", map[string]string{"tool.yaml": small}, "tool.yaml", nil},
		{"module is a folder", map[string]string{"tool.yaml": small, "a.wasm/x": ""}, "", ErrModule},
		{"large manifest", map[string]string{"tool.yaml": small + strings.Repeat("#", strictyaml.MaxDocument), "a.wasm": emptyModule}, "", nil},
		{"two sections", map[string]string{"a.wasm": withSection(small, small)}, "a.wasm", nil},
		{"no builder", map[string]string{"tool.yaml": strings.Replace(small, "module: a.wasm", "source: {language: go}", 1)}, "", ErrNoBuilder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, tt.files)
			p, err := Load(filepath.Join(dir, tt.path), nil)
			if err == nil || p != nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("%+v, %v", p, err)
			}
			if strings.ContainsAny(err.Error(), "\n\r") || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %q", err)
			}
		})
	}
}

// TestLoadStaysInside has links that lead out of the folder.
func TestLoadStaysInside(t *testing.T) {
	outside := folder(t, map[string]string{"a.wasm": emptyModule, "tool.yaml": small, "src/x": ""})
	link := func(target, name string) {
		if err := os.Symlink(target, name); err != nil {
			t.Skip(err)
		}
	}
	module := folder(t, map[string]string{"tool.yaml": small})
	link(filepath.Join(outside, "a.wasm"), filepath.Join(module, "a.wasm"))
	manifest := folder(t, map[string]string{"a.wasm": emptyModule})
	link(filepath.Join(outside, "tool.yaml"), filepath.Join(manifest, "tool.yaml"))
	through := folder(t, map[string]string{"tool.yaml": strings.Replace(small, "a.wasm", "d/a.wasm", 1)})
	link(outside, filepath.Join(through, "d"))
	source := folder(t, map[string]string{"tool.yaml": strings.Replace(small, "module: a.wasm", "source: {language: go, dir: d}", 1)})
	link(filepath.Join(outside, "src"), filepath.Join(source, "d"))
	build := func(string, Source, ABI) ([]byte, error) { return []byte(emptyModule), nil }
	for _, path := range []string{module, manifest, filepath.Join(manifest, "a.wasm"), through, source} {
		if p, err := Load(path, build); err == nil {
			t.Errorf("%s: %+v", path, p)
		}
	}
	inside := folder(t, map[string]string{"tool.yaml": small, "bin/a.wasm": emptyModule})
	link(filepath.Join("bin", "a.wasm"), filepath.Join(inside, "a.wasm"))
	if _, err := Load(inside, nil); err != nil {
		t.Errorf("a link inside the folder: %v", err)
	}
}

func TestLoadSource(t *testing.T) {
	doc := strings.Replace(small, "module: a.wasm", "abi: reactor\nsource: {language: go, dir: src}", 1)
	dir := folder(t, map[string]string{"tool.yaml": doc, "src/main.go": "package main"})
	built := ""
	p, err := Load(dir, func(d string, s Source, abi ABI) ([]byte, error) {
		built = d + " " + s.Language + " " + s.Dir + " " + string(abi)
		return []byte(emptyModule), nil
	})
	if err != nil || built != dir+" go src reactor" || string(p.Module) != emptyModule {
		t.Errorf("%q, %+v, %v", built, p, err)
	}
	cause := errors.New("cause")
	if _, err := Load(dir, func(string, Source, ABI) ([]byte, error) { return nil, cause }); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if _, err := Load(dir, func(string, Source, ABI) ([]byte, error) { return []byte("x"), nil }); !errors.Is(err, ErrModule) {
		t.Errorf("error %v", err)
	}
}
