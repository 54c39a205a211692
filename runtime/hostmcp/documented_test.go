package hostmcp

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
