package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// manifest is one that requests something of each kind.
const manifest = `name: notes
version: 1.0.0
module: notes.wasm
tools:
  - name: list_notes
    title: List notes
    description: Lists the notes.
    inputSchema: {type: object}
    annotations: {readOnlyHint: true, openWorldHint: false}
  - name: add_note
    description: |-
      Adds a note.
      The newest is last.
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
    annotations: {destructiveHint: false, openWorldHint: false}
requests:
  volumes: [{name: data, path: /data, access: read}]
  kv: true
  http: [{host: api.example.com, methods: [GET], paths: [/v1/*], secret: API_TOKEN}]
  env: [TZ]
relaxations:
  volatile: ["/data/notes.json#/next_id"]
labels: {data: private}
`

// parse returns a package of a manifest and a module.
func parse(t testing.TB, text string, module []byte) *tool.Package {
	t.Helper()
	m, err := tool.ParseManifest("tool.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, m, module)
}

func pack(t testing.TB, m *tool.Manifest, module []byte) *tool.Package {
	t.Helper()
	def, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }
	p := &tool.Package{Manifest: *m, Module: module, ModuleDigest: sum(module), DefinitionDigest: sum(def)}
	p.Digest = sum([]byte(p.ModuleDigest + p.DefinitionDigest))
	return p
}

func notes(t testing.TB, mutate ...func(m *tool.Manifest)) Candidate {
	t.Helper()
	p := parse(t, manifest, []byte("module"))
	for _, f := range mutate {
		f(&p.Manifest)
	}
	return Candidate{Name: "notes", Source: "/src/notes", Package: pack(t, &p.Manifest, p.Module)}
}

var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) *Store {
	t.Helper()
	s := Open(filepath.Join(t.TempDir(), "state"))
	s.now = func() time.Time { return day }
	return s
}

func admit(t testing.TB, s *Store, c Candidate) Record {
	t.Helper()
	r, written, err := s.Admit(c, Options{})
	if err != nil || !written {
		t.Fatalf("admit: written %t, error %v", written, err)
	}
	return r
}

// records returns the bytes of all that is in the store.
func records(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[d.Name()] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}
