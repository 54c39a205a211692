package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

func TestParseDescription(t *testing.T) {
	tools, err := ParseDescription([]byte(`{"tools": [{
		"name": "t", "description": "a", "inputSchema": {"type": "object", "additionalProperties": false},
		"annotations": {"title": "T", "readOnlyHint": false, "destructiveHint": false},
		"clientCapabilities": ["sampling", "elicitation"], "_meta": {"x": 1}, "icons": [], "execution": {"taskSupport": "forbidden"}
	}], "nextCursor": "", "_meta": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := capabilities.Claim{ReadOnly: capabilities.False, Destructive: capabilities.False}
	if len(tools) != 1 || tools[0].Claim != want || tools[0].Title != "T" || tools[0].OutputSchema != nil {
		t.Errorf("tools %+v", tools)
	}
	if got := tools[0].ClientCapabilities; !slices.Equal(got, []string{ClientElicitation, ClientSampling}) {
		t.Errorf("client capabilities %q", got)
	}
	if got := string(tools[0].InputSchema); got != `{"type":"object","additionalProperties":false}` {
		t.Errorf("schema %s", got)
	}
}

func TestParseDescriptionError(t *testing.T) {
	const object = `"inputSchema":{"type":"object"}`
	one := func(s string) string { return `{"tools":[{"name":"t",` + object + s + `}]}` }
	for _, tt := range []struct{ name, doc string }{
		{"empty", ``},
		{"list", `[]`},
		{"no tools", `{}`},
		{"none", `{"tools":[]}`},
		{"null", `{"tools":null}`},
		{"two values", one("") + `{}`},
		{"tail", one("") + `x`},
		{"duplicate", one(`,"name":"u"`)},
		{"client capabilities, unknown", one(`,"clientCapabilities":["tasks"]`)},
		{"client capabilities, twice", one(`,"clientCapabilities":["roots","roots"]`)},
		{"client capabilities, no list", one(`,"clientCapabilities":{"roots":{}}`)},
		{"client capabilities, misspelt", one(`,"ClientCapabilities":["roots"]`)},
		{"duplicate escaped", one(`,"n\u0061me":"u"`)},
		{"case of a field", one(`,"Name":"u"`)},
		{"case of the list", `{"Tools":[{"name":"t",` + object + `}]}`},
		{"fold of a field", one(`,"annotation\u017f":{}`)},
		{"case of two unknown fields", one(`,"_meta":{"a":1,"A":2}`)},
		{"spelling of a hint", one(`,"annotations":{"read_only_hint":true}`)},
		{"unknown hint", one(`,"annotations":{"trustedHint":true}`)},
		{"null hint", one(`,"annotations":{"readOnlyHint":null}`)},
		{"text hint", one(`,"annotations":{"readOnlyHint":"true"}`)},
		{"duplicate hint", one(`,"annotations":{"readOnlyHint":false,"readOnlyHint":true}`)},
		{"no tool", `{"tools":[]}`},
		{"hidden", one(`,"description":"a\u202eb"`)},
		{"no schema", `{"tools":[{"name":"t"}]}`},
		{"schema keyword case", `{"tools":[{"name":"t","inputSchema":{"type":"object","Properties":{}}}]}`},
		{"bad name", `{"tools":[{"name":"t\u0000",` + object + `}]}`},
		{"not UTF-8", one(`,"description":"` + "\xff" + `"`)},
		{"number out of range", one(`,"_meta":1e999`)},
		{"deep", one(`,"_meta":` + strings.Repeat("[", 70) + strings.Repeat("]", 70))},
		{"large", one(`,"_meta":"` + strings.Repeat("x", strictyaml.MaxDocument) + `"`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools, err := ParseDescription([]byte(tt.doc))
			var me *ManifestError
			if !errors.As(err, &me) || tools != nil {
				t.Fatalf("tools %v, error %v", tools, err)
			}
			if strings.ContainsAny(err.Error(), "\n\r") || me.Problem == "" {
				t.Errorf("error %q", err)
			}
		})
	}
}

func TestDescriptionPlace(t *testing.T) {
	_, err := ParseDescription([]byte("{\n  \"tools\": [\n    {\"name\": \"t\", \"inputSchema\": 5}\n]}"))
	var me *ManifestError
	if !errors.As(err, &me) || me.Line != 3 || me.Field != "tools[0].inputSchema" {
		t.Errorf("%v", err)
	}
}

// TestDescriptionCost has long keys above many others.
func TestDescriptionCost(t *testing.T) {
	const longest, deepest = 256, 64 // of what is read
	long := strings.Repeat("k", longest)
	open, end := "", ""
	for range deepest - 2 {
		open, end = open+`{"`+long+`":`, end+"}"
	}
	var many strings.Builder
	many.WriteString(`"k":1`)
	for i := 0; many.Len() < strictyaml.MaxDocument-30_000; i++ {
		fmt.Fprintf(&many, `,"k%d":1`, i)
	}
	start := time.Now()
	_, err := ParseDescription([]byte(open + "{" + many.String() + "}" + end))
	if d := time.Since(start); err == nil || d > 30*time.Second {
		t.Errorf("took %v: %v", d, err)
	}
}

func FuzzParseDescription(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}`))
	f.Add([]byte(`{"tools":[{"name":"t","inputSchema":{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"anyOf":[true,{"$ref":"#/$defs/b"}]},"b":{"not":false}}}}]}`))
	f.Add([]byte(`{"tools":[{"name":"t","title":"\u202e","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tools, err := ParseDescription(b)
		if (err == nil) == (tools == nil) {
			t.Fatalf("tools %v, error %v", tools, err)
		}
		var me *ManifestError
		if err != nil && !errors.As(err, &me) {
			t.Fatalf("error is a %T", err)
		}
		for _, d := range tools {
			if !json.Valid(d.InputSchema) || d.OutputSchema != nil && !json.Valid(d.OutputSchema) {
				t.Fatalf("schema %s %s", d.InputSchema, d.OutputSchema)
			}
		}
		register(t, tools)
	})
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(small))
	for _, tt := range manifestErrors {
		f.Add([]byte(strings.Replace(full, tt.old, tt.with, 1)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest("tool.yaml", b)
		if (err == nil) == (m == nil) {
			t.Fatalf("manifest %v, error %v", m, err)
		}
		if err != nil {
			var me *ManifestError
			if !errors.As(err, &me) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("error %T %q", err, err)
			}
			return
		}
		if _, err := m.Canonical(); err != nil {
			t.Fatalf("canonical: %v", err)
		}
		register(t, m.Tools)
	})
}
