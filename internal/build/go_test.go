package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

func digestOf(t *testing.T, dir string, abi tool.ABI) string {
	t.Helper()
	flags, err := goFlagsFor(abi)
	if err != nil {
		t.Fatal(err)
	}
	o, err := locate(dir, inPlace)
	if err != nil {
		t.Fatal(err)
	}
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &goTool{command: "go", dir: temp, source: dir}
	settings, err := g.settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := take(t.Context(), g, temp, o)
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := s.digest(t.Context(), g, flags, settings)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDigest(t *testing.T) {
	src := goSource("package main\n\nimport _ \"embed\"\n\n//go:embed data.txt\nvar data string\n\nfunc main() { println(data) }\n")
	src["data.txt"] = "one"
	dir := write(t, src)
	base := digestOf(t, dir, tool.Command)
	if other := digestOf(t, write(t, src), tool.Command); other != base {
		t.Error("the digest depends on where the folder lies")
	}
	if digestOf(t, dir, tool.Reactor) == base {
		t.Error("the digest does not depend on the ABI")
	}
	for _, c := range []struct {
		name, text string
		changes    bool
	}{
		{"main_test.go", "package main", false},
		{"README.md", "hello", false},
		{"more_linux.go", "package main", false},
		{"more.go", "package main", true},
		{"data.txt", "two", true},
	} {
		if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := digestOf(t, dir, tool.Command)
		if (got != base) != c.changes {
			t.Errorf("%s: digest changed: %v, want %v", c.name, got != base, c.changes)
		}
		base = got
	}
}

func TestCachedRefusesWhatIsNoModule(t *testing.T) {
	dir := write(t, map[string]string{"empty.wasm": "", "short.wasm": "\x00as", "good.wasm": "\x00asm\x01\x00\x00\x00"})
	for name, want := range map[string]bool{"empty.wasm": false, "short.wasm": false, "good.wasm": true, "none.wasm": false} {
		if _, ok := cached(filepath.Join(dir, name)); ok != want {
			t.Errorf("%s: got %v, want %v", name, ok, want)
		}
	}
}

func TestGoEnv(t *testing.T) {
	got := goEnv([]string{"HOME=/h", "GOOS=linux", "GOARCH=arm64", "GOWASM=x", "CGO_ENABLED=1", "PWD=/p", "GOFLAGS=-mod=mod -race -tags=a -buildmode=pie -p=1"})
	want := []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GO111MODULE=on", "GOWORK=off", "GOPROXY=off", "GOVCS=*:off", "HOME=/h", "GOFLAGS=-tags=a -p=1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
