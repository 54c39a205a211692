package tool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// described parses a description of one tool with the input schema.
func described(schema string) ([]Definition, error) {
	return ParseDescription([]byte(`{"tools":[{"name":"t","inputSchema":` + schema + `}]}`))
}

func TestSchemaAccepted(t *testing.T) {
	for name, schema := range map[string]string{
		"plain":             `{"type":"object"}`,
		"properties":        `{"type":"object","properties":{"a":true,"b":false,"c":{}}}`,
		"keyword as a name": `{"type":"object","properties":{"$ref":{"type":"string"},"x-mcp-header":{"type":"string"},"Type":{"type":"null"}}}`,
		"keyword as data":   `{"type":"object","default":{"$ref":"http://example.com","Type":1},"examples":[{"$id":"x"}]}`,
		"local reference":   `{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"type":"string"}}}`,
		"anchor":            `{"type":"object","properties":{"a":{"$ref":"#here"}},"$defs":{"x":{"$anchor":"here"}}}`,
		"recursion":         `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		"recursion in a list": `{"type":"object","$defs":{"t":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/t"}}]}},
			"properties":{"t":{"$ref":"#/$defs/t"}}}`,
		"dialect":          `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"a":{}},"properties":{"b":{"$ref":"#/definitions/a"}}}`,
		"root id":          `{"$id":"https://example.com/s","type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":true}}`,
		"unknown keywords": `{"type":"object","x-order":["a"],"markdownDescription":"a"}`,
		"types":            `{"type":"object","properties":{"a":{"type":["string","null"]}}}`,
		"dependencies":     `{"type":"object","dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
	} {
		if _, err := described(schema); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefused(t *testing.T) {
	for name, schema := range map[string]string{
		"remote":             `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`,
		"file":               `{"type":"object","$ref":"file:///etc/passwd"}`,
		"other document":     `{"type":"object","$ref":"other.json#/a"}`,
		"remote dynamic":     `{"type":"object","$dynamicRef":"https://example.com/#a"}`,
		"nowhere":            `{"type":"object","$ref":"#/$defs/a"}`,
		"into data":          `{"type":"object","default":{"type":"string"},"properties":{"a":{"$ref":"#/default"}}}`,
		"no anchor":          `{"type":"object","$ref":"#a"}`,
		"nested id":          `{"type":"object","properties":{"a":{"$id":"https://example.com/a"}}}`,
		"self":               `{"type":"object","$ref":"#"}`,
		"cycle":              `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"if":{"$ref":"#/$defs/a"}}}}`,
		"dynamic cycle":      `{"type":"object","$dynamicAnchor":"x","anyOf":[{"$dynamicRef":"#x"}]}`,
		"dependent cycle":    `{"type":"object","dependentSchemas":{"a":{"$ref":"#"}}}`,
		"properties list":    `{"type":"object","properties":[]}`,
		"schema number":      `{"type":"object","properties":{"a":1}}`,
		"schema null":        `{"type":"object","properties":{"a":null}}`,
		"anyOf object":       `{"type":"object","anyOf":{}}`,
		"anyOf text":         `{"type":"object","anyOf":["a"]}`,
		"unknown type":       `{"type":"object","properties":{"a":{"type":"text"}}}`,
		"type number":        `{"type":"object","properties":{"a":{"type":1}}}`,
		"two anchors":        `{"type":"object","$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`,
		"pattern":            `{"type":"object","properties":{"a":{"pattern":"(?<=a)b"}}}`,
		"repetition":         `{"type":"object","properties":{"a":{"pattern":"((a{100}){100}){100}"}}}`,
		"dialect":            `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`,
		"case of a keyword":  `{"type":"object","properties":{"a":{"Enum":[1]}}}`,
		"case of properties": `{"type":"object","properties":{"a":{},"A":{}}}`,
		"hidden name":        `{"type":"object","properties":{"a\u200b":{}}}`,
		"hidden text":        `{"type":"object","properties":{"a":{"description":"x\u2066y"}}}`,
		"hidden default":     `{"type":"object","properties":{"a":{"default":"\u001b[0m"}}}`,
		"large":              `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := described(schema)
			var me *ManifestError
			if !errors.As(err, &me) || !strings.HasPrefix(me.Field, "tools[0].inputSchema") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// doubling returns a schema in which each level refers twice to the next.
func doubling(levels int) string {
	var defs []string
	for i := range levels {
		defs = append(defs, fmt.Sprintf(`"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i, i+1, i+1))
	}
	defs = append(defs, fmt.Sprintf(`"l%d":{}`, levels))
	return `{"type":"object","$ref":"#/$defs/l0","$defs":{` + strings.Join(defs, ",") + `}}`
}

func TestSchemaWork(t *testing.T) {
	if _, err := described(doubling(100)); err == nil {
		t.Error("a schema that doubles a hundred times is accepted")
	}
	if _, err := described(doubling(8)); err != nil {
		t.Error(err)
	}
}

// TestSchemaEnds validates a value with each accepted schema: what is accepted
// here may be used for each call.
func TestSchemaEnds(t *testing.T) {
	tools, err := described(doubling(9))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := s.UnmarshalJSON(tools[0].InputSchema); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := r.Validate(map[string]any{"a": 1.0}); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}
