package strictyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// repeat builds a text from a counter until it has n bytes.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// costly returns documents of about n bytes that cost parsers of YAML much.
func costly(n int) map[string]string {
	deep := func(open string, k int) string { return "a: " + strings.Repeat(open, k) }
	indented := func() string {
		var b strings.Builder
		for i := 0; b.Len() < n/2; i++ {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	long := strings.Repeat("k", maxKey)
	return map[string]string{
		"keys":            repeat(n, "k%d: 1\n"),
		"empty keys":      repeat(n, "k%d:\n"),
		"nested keys":     repeat(n, "m%d:\n  k: 1\n"),
		"most keys":       strings.Join(strings.SplitN(repeat(n, "k%d:\n"), "\n", maxKeys)[:maxKeys-1], "\n"),
		"many full maps":  repeat(n, "- k%d:\n  b:\n  c:\n"),
		"flow keys":       "{" + repeat(n, "a%d, ") + "}",
		"flow pairs":      "a: [\n" + repeat(n, "a%d: 1\n") + "]",
		"flow pairs 2":    "a: [" + repeat(n, "a%d: 1, ") + "]",
		"flow lines":      "{" + repeat(n, "a%d:\n"),
		"flow list":       "a: [" + strings.Repeat("a,", n/2) + "]",
		"list":            strings.Repeat("- a\n", n/4),
		"empty list":      strings.Repeat("-\n", n/2),
		"dashes":          strings.Repeat("- ", n/2),
		"brackets":        deep("[", n),
		"braces":          deep("{a: ", n/4),
		"pairs":           deep("[a: ", n/4),
		"indented":        indented(),
		"colons":          deep("a: ", n/3),
		"questions":       strings.Repeat("? ", n/2),
		"tags":            deep("!a ", n/3),
		"anchors":         deep("&a ", n/3),
		"plain":           "a: " + strings.Repeat("x", n),
		"words":           "a: " + strings.Repeat("x ", n/2),
		"lines":           "a: " + strings.Repeat("x\n  ", n/4),
		"literal":         "a: |\n" + strings.Repeat("  x\n", n/4),
		"folded":          "a: >\n" + strings.Repeat("  x\n", n/4),
		"literal blank":   "a: |\n" + strings.Repeat(strings.Repeat("\n", maxBlank-1)+"  x\n", n/(maxBlank+3)),
		"literal spaces":  "a: |\n" + strings.Repeat("     \n     \n  x\n", n/16),
		"folded blank":    "a: >\n" + strings.Repeat(strings.Repeat("\n", maxBlank-1)+"  x\n", n/(maxBlank+3)),
		"plain blank":     "a: x\n" + strings.Repeat(strings.Repeat("\n", maxBlank-1)+"  x\n", n/(maxBlank+3)),
		"blank":           strings.Repeat("\n", n) + "a: b",
		"long line":       "a: |\n  " + strings.Repeat("x ", n/2),
		"double":          `a: "` + strings.Repeat(`\n`, n/2) + `"`,
		"double lines":    `a: "` + strings.Repeat("x\n ", n/3) + `"`,
		"single":          "a: '" + strings.Repeat("''", n/2) + "'",
		"single lines":    "a: '" + strings.Repeat("x\n ", n/3) + "'",
		"open quote":      `a: "` + strings.Repeat("x", n),
		"comments":        strings.Repeat("#\n", n/2) + "a: b",
		"comment":         "a: b #" + strings.Repeat("x", n),
		"comments inside": "a: |\n" + strings.Repeat("  x # y\n", n/8),
		"spaces":          "a: " + strings.Repeat(" ", n) + "b",
		"long keys":       repeat(n, long+"%d: 1\n"),
		"deep long keys": func() string {
			var b strings.Builder
			for i := range maxDepth - 2 {
				b.WriteString(strings.Repeat(" ", i) + long + ":\n")
			}
			return b.String() + repeat(n/2, strings.Repeat(" ", maxDepth)+"k%d: 1\n")
		}(),
		"documents": strings.Repeat("---\na: b\n", n/9),
		"ends":      strings.Repeat("...\n", n/4),
		"returns":   strings.Repeat("a: b\r", n/5),
	}
}

// TestYAMLCost feeds documents that are costly to read. Each must end quickly,
// read or refused; what grows with the square of the size takes minutes.
func TestYAMLCost(t *testing.T) {
	sizes := []int{MaxDocument / 10, MaxDocument - 64}
	if testing.Short() {
		sizes = sizes[:1] // the long ones take minutes under the race detector
	}
	for _, n := range sizes {
		for name, doc := range costly(n) {
			start := time.Now()
			_, err := ParseYAML("tool.yaml", []byte(doc))
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("%s, %d bytes: took %v", name, n, d)
			} else if d > time.Second/2 {
				t.Logf("%s, %d bytes: %v %v", name, n, d, err)
			}
			var me *Error
			if err != nil && !errors.As(err, &me) {
				t.Errorf("%s: error is a %T", name, err)
			}
		}
	}
}
