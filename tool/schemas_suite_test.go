package tool

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestJSONSchemaSuite judges as the official test suite of JSON Schema says, as
// far as it stays within one document. The suite comes with the library that
// reads schemas.
func TestJSONSchemaSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(string(bytes.TrimSpace(out)), "jsonschema", "testdata")
	for draft, dialect := range map[string]string{"draft2020-12": dialects[0], "draft7": dialects[2]} {
		files, err := filepath.Glob(filepath.Join(dir, draft, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", draft, len(files), err)
		}
		judged, elsewhere := 0, 0
		for _, file := range files {
			for _, g := range suiteOf(t, file) {
				graph, err := newGraph(withDialect(t, g.Schema, dialect), &patterns{})
				if err != nil {
					elsewhere++ // it has other documents, or several in one
					continue
				}
				for _, c := range g.Tests {
					v, _, f := readStrict(c.Data, false)
					if f != nil {
						t.Errorf("%s: %v", c.Data, f)
						continue
					}
					judged++
					if f := graph.judge(v, false); (f == nil) != c.Valid {
						t.Errorf("%s/%s: %s: %s\nschema %s\nvalue %s\ngot %v, valid %v", draft, filepath.Base(file), g.Description, c.Description, g.Schema, c.Data, f, c.Valid)
					}
				}
			}
		}
		if judged < 500 || elsewhere > 60 {
			t.Errorf("%s: %d judged, %d schemas not taken", draft, judged, elsewhere)
		}
	}
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func suiteOf(t *testing.T, file string) (groups []suiteGroup) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// withDialect says in which dialect a schema is written that does not say so.
func withDialect(t *testing.T, schema json.RawMessage, dialect string) json.RawMessage {
	if schema[0] != '{' {
		return schema
	}
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(schema, &keywords); err != nil {
		t.Fatal(err)
	}
	if keywords["$schema"] != nil {
		return schema
	}
	keywords["$schema"] = json.RawMessage(`"` + dialect + `"`)
	text, err := json.Marshal(keywords)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
