package clients

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// configure writes a configuration that serves packages. A reader finds the old
// one or the new.
func configure(t *testing.T, file string, packages ...string) {
	t.Helper()
	configureFor(t, file, nil, packages...)
}

// configureFor is configure with principals, by the tokens that they have.
func configureFor(t *testing.T, file string, tokens map[string]string, packages ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("packages:\n")
	for _, p := range packages {
		fmt.Fprintf(&b, "  - source: %q\n", p)
	}
	if len(tokens) > 0 {
		b.WriteString("principals:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		fmt.Fprintf(&b, "  - {name: %s, token: \"sha256:%x\"}\n", name, sha256.Sum256([]byte(tokens[name])))
	}
	configureText(t, file, b.String())
}

func configureText(t *testing.T, file, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(file), "next.yaml")
	write(t, next, []byte(text))
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

func newToken(t *testing.T) string {
	t.Helper()
	return "sbx_" + rand.Text()
}
