package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// candidate is arguments that a schema suggests.
type candidate struct {
	id        string
	arguments json.RawMessage
}

// Bounds of what is made from a schema that an author wrote.
const (
	maxExamples = 16
	maxDepth    = 16
	maxItems    = 64
	maxText     = 4096
	maxValues   = 4096 // of one candidate
)

// candidates returns arguments made from an input schema: its own examples and
// default, the least that it requires, and one with all that its properties give
// examples or defaults of. Whether they fit is for the schema to judge: what it
// says by patterns, dependencies and conditions is not followed.
func candidates(schema json.RawMessage) []candidate {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root any
	if d.Decode(&root) != nil {
		return nil
	}
	var list []candidate
	add := func(id string, v any) {
		b, err := json.Marshal(v)
		if err != nil || slices.ContainsFunc(list, func(c candidate) bool { return bytes.Equal(c.arguments, b) }) {
			return
		}
		list = append(list, candidate{id, b})
	}
	s, _ := root.(map[string]any)
	if examples, ok := s["examples"].([]any); ok {
		for i, v := range examples[:min(len(examples), maxExamples)] {
			add(fmt.Sprintf("example-%d", i+1), v)
		}
	}
	if v, ok := s["default"]; ok {
		add("default", v)
	}
	for _, way := range []struct {
		id   string
		fill bool
	}{{"minimal", false}, {"filled", true}} {
		g := generator{root: root, fill: way.fill, left: maxValues}
		if v, ok := g.object(s, 0); ok {
			add(way.id, v)
		}
	}
	return list
}

// generator makes a value that a schema might accept.
type generator struct {
	root any
	fill bool // optional properties too, where the schema says with what
	left int  // values that may still be made
}

// value returns a value for a schema; false where there is none within bounds.
func (g *generator) value(schema any, depth int) (any, bool) {
	if g.left--; g.left < 0 || depth > maxDepth {
		return nil, false
	}
	s := g.resolved(schema, 0)
	if v, ok := said(s); ok {
		return v, true
	}
	if enum, ok := s["enum"].([]any); ok && len(enum) > 0 {
		return enum[0], true
	}
	switch kind(s) {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "integer":
		return number(s, true), true
	case "number":
		return number(s, false), true
	case "boolean":
		return false, true
	case "null":
		return nil, true
	}
	return text(s), true
}

// said returns the value that a schema names itself.
func said(s map[string]any) (any, bool) {
	for _, word := range []string{"const", "default"} {
		if v, ok := s[word]; ok {
			return v, true
		}
	}
	if examples, ok := s["examples"].([]any); ok && len(examples) > 0 {
		return examples[0], true
	}
	return nil, false
}

// resolved returns a schema with what it refers to, and what it is all of or one
// of, merged into it as far as that goes.
func (g *generator) resolved(schema any, depth int) map[string]any {
	s, _ := schema.(map[string]any)
	out := maps.Clone(s)
	if out == nil {
		out = map[string]any{}
	}
	if depth > maxDepth {
		return out
	}
	var parts []any
	if ref, ok := s["$ref"].(string); ok {
		parts = append(parts, g.target(ref))
	}
	if all, ok := s["allOf"].([]any); ok {
		parts = append(parts, all...)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if any, ok := s[word].([]any); ok && len(any) > 0 {
			parts = append(parts, any[0])
		}
	}
	for _, p := range parts {
		merge(out, g.resolved(p, depth+1))
	}
	return out
}

// merge adds to a schema what another one says and it does not.
func merge(into, from map[string]any) {
	for word, v := range from {
		old, there := into[word]
		switch {
		case !there:
			into[word] = v
		case word == "properties":
			a, aok := old.(map[string]any)
			b, bok := v.(map[string]any)
			if aok && bok {
				both := maps.Clone(b)
				maps.Copy(both, a)
				into[word] = both
			}
		case word == "required":
			a, aok := old.([]any)
			b, bok := v.([]any)
			if aok && bok {
				into[word] = append(slices.Clone(a), b...)
			}
		}
	}
}

// target returns what a reference inside the schema leads to (RFC 6901).
func (g *generator) target(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := g.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return at
}

// kind returns the type of a schema's values, as far as it says one.
func kind(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, v := range t {
			if name, ok := v.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	for _, hint := range []struct{ word, kind string }{
		{"properties", "object"},
		{"required", "object"},
		{"items", "array"},
		{"minItems", "array"},
		{"minimum", "number"},
		{"maximum", "number"},
	} {
		if _, ok := s[hint.word]; ok {
			return hint.kind
		}
	}
	return "string"
}

// object returns an object with the properties that are required and, where
// optional ones are to be filled, those that the schema gives values for.
func (g *generator) object(schema map[string]any, depth int) (any, bool) {
	s := g.resolved(schema, 0)
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	out := map[string]any{}
	for _, r := range required {
		name, ok := r.(string)
		if !ok {
			return nil, false
		}
		if out[name], ok = g.value(properties[name], depth+1); !ok {
			return nil, false
		}
	}
	if !g.fill {
		return out, true
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, there := out[name]; there {
			continue
		}
		if v, ok := said(g.resolved(properties[name], 0)); ok {
			out[name] = v
		}
	}
	return out, true
}

func (g *generator) array(s map[string]any, depth int) (any, bool) {
	out := []any{}
	prefix, _ := s["prefixItems"].([]any)
	n := whole(s["minItems"], 0)
	if n > maxItems {
		return nil, false
	}
	for i := range n {
		item := s["items"]
		if i < len(prefix) {
			item = prefix[i]
		}
		v, ok := g.value(item, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}
