package tool

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

func canonicalOf(t testing.TB, doc string) []byte {
	t.Helper()
	m, err := ParseManifest("tool.yaml", []byte(doc))
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	c, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCanonical pins the canonical form: a change of it is a change of every
// digest that was approved, and needs a new name of the format.
func TestCanonical(t *testing.T) {
	golden(t, "canonical.golden", append(canonicalOf(t, full), '\n'))
	p := Package{Module: []byte("module")}
	m, err := ParseManifest("tool.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	p.Manifest = *m
	if err := p.digest(); err != nil {
		t.Fatal(err)
	}
	golden(t, "digest.golden", []byte(p.ModuleDigest+"\n"+p.DefinitionDigest+"\n"+p.Digest+"\n"))
}

// TestCanonicalIgnores writes the same manifest in other ways.
func TestCanonicalIgnores(t *testing.T) {
	want := canonicalOf(t, full)
	for name, doc := range map[string]string{
		"comments":      strings.ReplaceAll(full, "\n", "   # comment\n"),
		"line ends":     strings.ReplaceAll(full, "\n", "\r\n"),
		"mark":          "\ufeff" + full,
		"document":      "---\n" + full,
		"quotes":        strings.Replace(full, "title: List notes", `"title": 'List notes'`, 1),
		"default abi":   strings.Replace(full, "abi: command\n", "", 1),
		"hex":           strings.Replace(full, "output: 65536", "output: 0x10000", 1),
		"unit":          strings.Replace(full, "output: 65536", "output: 64KiB", 1),
		"duration":      strings.Replace(full, "1m30s", "90s", 1),
		"days":          strings.Replace(full, "30d", "720h", 1),
		"schema keys":   strings.Replace(full, "{type: string, maxLength: 100}", "{maxLength: 100, type: string}", 1),
		"schema block":  strings.Replace(full, "text: {type: string, maxLength: 100}", "text:\n          maxLength: 100\n          type: string", 1),
		"argument keys": strings.Replace(full, "{b: 1, a: [true, null]}", "{a: [true, ~], b: 1}", 1),
		"module":        strings.Replace(full, "notes.wasm", "out/notes.wasm", 1),
		"source":        strings.Replace(full, "module: notes.wasm", "source: {language: go}", 1),
		"json":          asJSON(t, full),
	} {
		if got := canonicalOf(t, doc); !bytes.Equal(got, want) {
			t.Errorf("%s changes the canonical form\n%s\n%s", name, got, want)
		}
	}
}

// TestDigestClientCapabilities: each set of required capabilities has a form of
// its own, however it is written, and no capability the form of before.
func TestDigestClientCapabilities(t *testing.T) {
	form := func(field string) string {
		return string(canonicalOf(t, strings.Replace(small, "}}]", "}"+field+"}]", 1)))
	}
	if none, empty := form(""), form(", clientCapabilities: []"); none != empty || strings.Contains(none, "clientCapabilities") {
		t.Errorf("without: %s\nempty: %s", none, empty)
	}
	names := ClientCapabilities()
	seen := map[string]bool{}
	for set := range 1 << len(names) {
		var in []string
		for i, name := range names {
			if set>>i&1 == 1 {
				in = append(in, name)
			}
		}
		one := form(", clientCapabilities: [" + strings.Join(in, ", ") + "]")
		slices.Reverse(in)
		if other := form(", clientCapabilities: [" + strings.Join(in, ", ") + "]"); other != one {
			t.Errorf("order shows: %s\n%s", one, other)
		}
		seen[one] = true
	}
	if len(seen) != 1<<len(names) {
		t.Errorf("%d forms of %d", len(seen), 1<<len(names))
	}
}

// asJSON writes a YAML document as JSON, which is YAML too.
func asJSON(t *testing.T, doc string) string {
	n, err := strictyaml.ParseYAML("tool.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return string(n.JSON(true))
}

// TestCanonicalSees changes one thing at a time; each must show.
func TestCanonicalSees(t *testing.T) {
	seen := map[string]string{string(canonicalOf(t, full)): "the original"}
	for _, change := range [][2]string{
		{"name: notes", "name: note"},
		{"1.0.0", "1.0.1"},
		{"abi: command", "abi: reactor"},
		{"readOnlyHint: true, ", ""},
		{"readOnlyHint: true", "readOnlyHint: false"},
		{"openWorldHint: false", "openWorldHint: true"},
		{", openWorldHint: false", ""},
		{"      destructiveHint: false\n", ""},
		{"destructiveHint: false", "destructiveHint: true"},
		{"idempotentHint: true", "idempotentHint: false"},
		{"      idempotentHint: true\n", ""},
		{"title: List notes", "title: List note"},
		{"title: Add a note", "title: Add note"},
		{"Lists the notes.", "Lists notes."},
		{"maxLength: 100", "maxLength: 101"},
		{"required: [text]", "required: []"},
		{"outputSchema: {type: object", "outputSchema: {type: array"},
		{"    idempotencyKeyArgument: idempotency_key\n", ""},
		{"access: write", "access: read"},
		{", access: write", ""},
		{"path: /ref", "path: /refs"},
		{"name: ref", "name: refs"},
		{"kv: true", "kv: false"},
		{"main", "other"},
		{"api.example.com", "api.example.org"},
		{"[GET]", "[GET, POST]"},
		{"/v1/*", "/v2/*"},
		{"API_TOKEN", "OTHER_TOKEN"},
		{"orders-db", "users-db"},
		{"8443", "8444"},
		{"[TZ]", "[TZ, LANG]"},
		{"1MiB", "2MiB"},
		{"session: true", "session: false"},
		{"setup: true", "setup: false"},
		{"next_id", "last_id"},
		{"/data/book.md", "/data/books.md"},
		{"under: /data/history", "under: /data/old"},
		{"from: pending", "from: open"},
		{"to: accepted", "to: rejected"},
		{"30d", "31d"},
		{"128MiB", "127MiB"},
		{"1m30s", "1m31s"},
		{"65536", "65537"},
		{"fuel: 7", "fuel: 8"},
		{"writes: 1GiB", "writes: 1MiB"},
		{"files: 10", "files: 11"},
		{"tool: list_notes", "tool: add_note"},
		{"b: 1", "b: 2"},
		{"private", "public"},
	} {
		doc := strings.Replace(full, change[0], change[1], 1)
		if doc == full {
			t.Fatalf("%q is not in the manifest", change[0])
		}
		got := string(canonicalOf(t, doc))
		if other, ok := seen[got]; ok {
			t.Errorf("%q looks as %s", change, other)
		}
		seen[got] = fmt.Sprintf("%q", change)
	}
}

// TestCanonicalOrder shuffles the keys of every mapping.
func TestCanonicalOrder(t *testing.T) {
	root, err := strictyaml.ParseYAML("tool.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := canonicalOf(t, full)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Int64().Draw(rt, "seed")
		doc := shuffled(root, rand.New(rand.NewSource(seed)))
		if got := canonicalOf(t, string(doc.JSON(false))); !bytes.Equal(got, want) {
			rt.Fatalf("the order of keys shows:\n%s", got)
		}
	})
}

func shuffled(n *strictyaml.Node, r *rand.Rand) *strictyaml.Node {
	c := *n
	c.Items, c.Entries = nil, nil
	for _, i := range n.Items {
		c.Items = append(c.Items, shuffled(i, r))
	}
	for _, e := range n.Entries {
		e.Value = shuffled(e.Value, r)
		c.Entries = append(c.Entries, e)
	}
	r.Shuffle(len(c.Entries), func(i, j int) { c.Entries[i], c.Entries[j] = c.Entries[j], c.Entries[i] })
	return &c
}

// TestDigestHints gives a tool every combination of declared hints: no two
// have the same digest.
func TestDigestHints(t *testing.T) {
	seen := map[string]bool{}
	for i := range 81 {
		var hints []string
		for k, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			switch i / []int{1, 3, 9, 27}[k] % 3 {
			case 1:
				hints = append(hints, name+": false")
			case 2:
				hints = append(hints, name+": true")
			}
		}
		doc := strings.Replace(small, "}}]", "}, annotations: {"+strings.Join(hints, ", ")+"}}]", 1)
		seen[string(canonicalOf(t, doc))] = true
	}
	if len(seen) != 81 {
		t.Errorf("%d forms of 81", len(seen))
	}
}
