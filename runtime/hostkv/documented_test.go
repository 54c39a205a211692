package hostkv

import (
	"maps"
	"os"
	"testing"

	"github.com/sandboxd/sandboxd/internal/wasmtest"
)

// TestDocumented holds the functions and their types against the page for authors.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	got, err := wasmtest.Documented(string(page), ModuleName)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range functions() {
		params, results, _ := Signature(f.name)
		want[f.name] = wasmtest.Signature(params, results)
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/abi.md has %v, want %v", got, want)
	}
}

// TestExamples runs the calls that the page shows.
func TestExamples(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	g.store("put", "title", "Milk")
	g.store("put", "n", "41")
	g.put(16, "title")
	if e := g.call("get", 16, 5, 64, 8, 32); e != success {
		t.Errorf("get = %d", e)
	}
	value, _ := g.Memory().Read(64, 5)
	size, _ := g.Memory().Read(32, 4)
	if string(value) != "Milk\x00" || string(size) != "\x04\x00\x00\x00" {
		t.Errorf("get wrote %q, %q", value, size)
	}
	g.put(16, "n")
	if e := g.call("increment", 16, 1, 1, 32); e != success {
		t.Errorf("increment = %d", e)
	}
	if sum, _ := g.Memory().Read(32, 8); string(sum) != "\x2a\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("increment wrote %q", sum)
	}
	g.store("put", "ab", "x")
	if e := g.call("scan", 0, 0, 0, 0, 1, 64, 100, 32); e != success {
		t.Errorf("scan = %d", e)
	}
	if entry, _ := g.Memory().Read(64, 11); string(entry) != "\x02\x00\x00\x00\x01\x00\x00\x00abx" {
		t.Errorf("scan wrote %q", entry)
	}
}
