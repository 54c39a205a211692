package snippets

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/clients"
)

var python = flag.String("python", "", "a Python that has the package mcp; empty: Python snippets are only compiled")

// program is the sandboxd under test, clone the checkout, cache the folder that
// holds the program's cache.
var (
	program *clients.Program
	clone   string
	cache   string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped with -short: the program under test is a process of its own")
		return
	}
	dir, err := os.MkdirTemp("", "snippets")
	if err == nil {
		program, err = clients.Build(dir)
	}
	if err == nil {
		clone, err = filepath.Abs(filepath.Join("..", ".."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cache = filepath.Join(dir, "cache")
	program.Cache = filepath.Join(cache, "sandboxd")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// environment returns the one that a host gives a server: state and cache are in
// folders of the test.
func environment(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output() // would follow XDG_CACHE_HOME
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "GOCACHE="+string(bytes.TrimSpace(out)), "XDG_STATE_HOME="+t.TempDir(), "XDG_CACHE_HOME="+cache)
}

// placed fills in what a reader of the page fills in.
func placed(text string) string {
	return strings.NewReplacer("/path/to/sandboxd", filepath.ToSlash(program.Path), "/path/to/clone", filepath.ToSlash(clone)).Replace(text)
}

// block is a fenced block of a page.
type block struct {
	lang string
	file string // the name after the language; empty: none
	text string
}

// blocks returns the fenced blocks of a page, with placeholders filled in.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	var all []block
	var b *block
	for line := range strings.Lines(placed(read(t, page))) {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && b != nil:
			all, b = append(all, *b), nil
		case fence:
			lang, file, _ := strings.Cut(mark, " ")
			b = &block{lang: lang, file: file}
		case b != nil:
			b.text += line
		}
	}
	if len(all) == 0 || b != nil {
		t.Fatalf("%s: %d blocks, the last one open: %t", page, len(all), b != nil)
	}
	return all
}

// read returns a file of the checkout.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(clone, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
