package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

// anySchema draws schemas in which keywords meet that know of each other.
func anySchema() *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{
		`true`, `false`, `{}`, `{"type":"integer"}`, `{"type":["string","null"]}`, `{"enum":[1,"a",[1],{"a":1}]}`, `{"const":[1.0]}`, `{"minimum":1}`,
		`{"exclusiveMaximum":1.5}`, `{"multipleOf":0.5}`, `{"maxLength":1}`, `{"pattern":"^a"}`, `{"required":["a","a"]}`, `{"minProperties":2}`,
		`{"maxItems":1}`, `{"uniqueItems":true}`, `{"dependentRequired":{"a":["b"]}}`, `{"$ref":"#/$defs/d"}`,
	})
	return rapid.Custom(func(t *rapid.T) string { return schemaOf(t, leaf, 3) })
}

func schemaOf(t *rapid.T, leaf *rapid.Generator[string], levels int) string {
	if levels == 0 || rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		return leaf.Draw(t, "leaf")
	}
	var keywords []string
	seen := map[string]bool{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		form := rapid.SampledFrom([]string{
			`"properties":{"a":%s,"b":%s}`, `"patternProperties":{"^a":%s}`, `"additionalProperties":%s`, `"propertyNames":%s`, `"unevaluatedProperties":%s`,
			`"prefixItems":[%s]`, `"items":%s`, `"contains":%s`, `"unevaluatedItems":%s`, `"allOf":[%s,%s]`, `"anyOf":[%s,%s]`, `"oneOf":[%s,%s]`,
			`"not":%s`, `"if":%s`, `"then":%s`, `"else":%s`, `"dependentSchemas":{"a":%s}`, `"minContains":0`, `"maxContains":1`,
		}).Draw(t, "form")
		if seen[form] {
			continue
		}
		seen[form] = true
		for strings.Contains(form, "%s") {
			form = strings.Replace(form, "%s", schemaOf(t, leaf, levels-1), 1)
		}
		keywords = append(keywords, form)
	}
	return "{" + strings.Join(keywords, ",") + "}"
}

func anyValue(levels int) *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{`null`, `true`, `0`, `1`, `1.0`, `1.5`, `"a"`, `"ab"`, `""`, `[]`, `{}`, `[1]`})
	if levels == 0 {
		return leaf
	}
	inner := anyValue(levels - 1)
	return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(inner, 0, 3).Draw(t, "items"), ",") + "]"
	}), rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, key := range []string{"a", "b", "c", "ab"} {
			if rapid.Bool().Draw(t, key) {
				members = append(members, `"`+key+`":`+inner.Draw(t, "value"))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}))
}

// Where the library for JSON Schema has a verdict, it is ours.
func TestJudgedAsByTheLibrary(t *testing.T) {
	verdicts := map[bool]int{}
	enough.Check(t, func(rt *rapid.T) {
		schema := `{"$defs":{"d":{"type":["integer","object"],"properties":{"a":{"$ref":"#/$defs/d"}}}},"allOf":[` + anySchema().Draw(rt, "schema") + `]}`
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(schema), &s); err != nil {
			rt.Fatal(err)
		}
		library, err := s.Resolve(nil)
		if err != nil {
			rt.Fatal(err)
		}
		g, err := newGraph([]byte(schema), &patterns{})
		if err != nil {
			rt.Fatal(err)
		}
		for range 10 {
			value := anyValue(3).Draw(rt, "value")
			var theirs any
			if err := json.Unmarshal([]byte(value), &theirs); err != nil {
				rt.Fatal(err)
			}
			ours, _, f := readStrict([]byte(value), true)
			if f != nil {
				rt.Fatal(f)
			}
			f, want := g.judge(ours, false), library.Validate(theirs)
			if (f == nil) != (want == nil) {
				rt.Fatalf("schema %s\nvalue %s\ngot %v\nthe library says %v", schema, value, f, want)
			}
			verdicts[f == nil]++
		}
	}, func() string {
		if verdicts[true] == 0 || verdicts[false] == 0 {
			return fmt.Sprintf("verdicts %v", verdicts)
		}
		return ""
	})
}
