package hostoutbox

import (
	"maps"
	"os"
	"testing"

	"github.com/sandboxd/sandboxd/internal/wasmtest"
)

// TestDocumented holds the function and its type against the page for authors.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	got, err := wasmtest.Documented(string(page), ModuleName)
	if err != nil {
		t.Fatal(err)
	}
	params, results, _ := Signature(sendName)
	if want := map[string]string{sendName: wasmtest.Signature(params, results)}; !maps.Equal(got, want) {
		t.Errorf("docs/abi.md has %v, want %v", got, want)
	}
}
