package tool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
	"github.com/sandboxd/sandboxd/tool"
)

// looseSchema declares names whose case variants readers confuse, at two depths
// and behind references and alternatives.
const looseSchema = `{
	"type": "object",
	"properties": {"text": {}, "Kind": {"type": ["string", "integer"]}, "inner": {"$ref": "#/$defs/inner"}, "free": {"type": "object"}},
	"$defs": {"inner": {"type": "object", "allOf": [{"properties": {"text": {"type": "string"}}}], "anyOf": [{"properties": {"kind": {}}}, true]}}
}`

// loose is what a Go guest reads such arguments into, matching without case.
type loose struct {
	Text  any `json:"text"`
	Kind  any `json:"Kind"`
	Inner *struct {
		Text any `json:"text"`
		Kind any `json:"kind"`
	} `json:"inner"`
}

// exact reads the same by keys as they are written.
func exact(t *rapid.T, raw []byte) loose {
	var m map[string]json.RawMessage
	var l loose
	read := func(raw json.RawMessage, to any) {
		if raw == nil {
			return
		}
		if err := json.Unmarshal(raw, to); err != nil {
			t.Fatal(err)
		}
	}
	read(raw, &m)
	read(m["text"], &l.Text)
	read(m["Kind"], &l.Kind)
	if raw := m["inner"]; raw != nil {
		var inner map[string]json.RawMessage
		read(raw, &inner)
		read(raw, &l.Inner)
		l.Inner.Text, l.Inner.Kind = nil, nil
		read(inner["text"], &l.Inner.Text)
		read(inner["kind"], &l.Inner.Kind)
	}
	return l
}

func anyObject() *rapid.Generator[string] {
	key := rapid.SampledFrom([]string{`"text"`, `"Text"`, `"t\u0065xt"`, `"kind"`, `"Kind"`, `"\u212aind"`, `"inner"`, `"INNER"`, `"free"`, `"other"`})
	leaf := rapid.SampledFrom([]string{`1`, `"a"`, `null`, `true`, `[1,"b"]`, `1.50`, `"\u00e9\ud83d\ude00"`, `"\ud83d"`, `12345678901234567890`})
	object := func(value *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				members = append(members, key.Draw(t, "key")+" : "+value.Draw(t, "value"))
			}
			return "{" + strings.Join(members, ", ") + "}"
		})
	}
	return object(rapid.OneOf(leaf, object(leaf)))
}

func TestAcceptedIsReadTheSameByAll(t *testing.T) {
	s := schemas(t, looseSchema, "")
	accepted := 0
	enough.Check(t, func(t *rapid.T) {
		in := []byte(anyObject().Draw(t, "in"))
		got, err := s.Arguments(in)
		if err != nil {
			return
		}
		accepted++
		want := exact(t, got)
		for _, raw := range [][]byte{in, got} {
			var folded loose
			if err := json.Unmarshal(raw, &folded); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(folded, want) {
				t.Fatalf("%s: without case %+v, by the key %+v", raw, folded, want)
			}
		}
		if again, err := s.Arguments(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s becomes %s, %v", got, again, err)
		}
	}, func() string {
		if accepted == 0 {
			return "nothing was accepted"
		}
		return ""
	})
}

// Where no spelling is in doubt, arguments fit where the validator says so.
func TestArgumentsFitAsTheValidatorSays(t *testing.T) {
	s := schemas(t, noteSchema, "")
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(noteSchema), &schema); err != nil {
		t.Fatal(err)
	}
	validator, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string][]string{
		"title": {`"a"`, `""`, `"123456789"`, `1`}, "count": {`0`, `9.0`, `10`, `-1`, `0.5`}, "ratio": {`0.5`, `1`, `0`},
		"mode": {`"fast"`, `3`, `3.0`, `"slow"`}, "kind": {`"note"`, `"x"`}, "id": {`null`, `7`, `"7"`},
		"tags": {`[]`, `["a"]`, `["a","b","c"]`, `["A"]`, `[1]`}, "labels": {`{}`, `{"a":"b"}`, `{"a":1}`},
		"place": {`{"Lat":1}`, `{}`, `[]`}, "either": {`"a"`, `1`, `true`}, "other": {`1`},
	}
	seen := map[bool]int{}
	enough.Check(t, func(t *rapid.T) {
		object := map[string]json.RawMessage{}
		for name, values := range members {
			if rapid.Bool().Draw(t, name) || name == "title" {
				object[name] = json.RawMessage(rapid.SampledFrom(values[:1+rapid.IntRange(0, len(values)-1).Draw(t, "n")]).Draw(t, "value"))
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "strict") > 0 {
			delete(object, "other")
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		_, err = s.Arguments(raw)
		if want := validator.Validate(v); (err == nil) != (want == nil) {
			t.Fatalf("%s: %v, the validator says %v", raw, err, want)
		}
		seen[err == nil]++
	}, func() string {
		if seen[true] == 0 || seen[false] == 0 {
			return fmt.Sprintf("fit: %v", seen)
		}
		return ""
	})
}

func FuzzArguments(f *testing.F) {
	s := schemas(f, noteSchema, looseSchema)
	for _, in := range []string{
		`{"title":"a","labels":{"k":"\ud83d\ude00"}}`, `{"Title":"a"}`, `{"title":"\ud800"}`, `{"a":[1e400]}`, ``, `{"title":"a","count":9.0}`,
		`{"free":{"Text":1,"tExt":2},"inner":{"text":"a"},"title":"a"}`, `{"a":5e-324}`, `{"title":"a","labels":{` + keys(300) + `,"K7":""}}`,
	} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := s.Arguments(json.RawMessage(in))
		if (got == nil) == (err == nil) {
			t.Fatalf("both or none of %q and %v", got, err)
		}
		if _, ok := errors.AsType[*tool.ArgumentsError](err); err != nil && !ok {
			t.Fatalf("error of type %T", err)
		}
		if err == nil {
			again, err := s.Arguments(got)
			if err != nil || !bytes.Equal(again, got) {
				t.Fatalf("%s becomes %s, %v", got, again, err)
			}
		}
		if _, err := s.Output(json.RawMessage(in)); err != nil {
			if _, ok := errors.AsType[*tool.OutputError](err); !ok {
				t.Fatalf("error of type %T", err)
			}
		}
	})
}

// keys writes n members of an object.
func keys(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return strings.Join(members, ",")
}

func FuzzNewSchemas(f *testing.F) {
	// Each item is held against all properties, once a key elsewhere is in doubt.
	f.Add(`{"type":"object","properties":{"list":{"items":{"properties":{`+strings.ReplaceAll(keys(200), `"v"`, `{}`)+`}}},"free":{}}}`,
		`{"free":{"K1":1},"list":[`+strings.Repeat(`{},`, 1000)+`{}]}`)
	f.Add(`{"properties":{"a":{"pattern":"(a|aa)*b"}},"unevaluatedProperties":false}`, `{"a":"aaaaaaaaaaaaaaaaaaaaaaaa"}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"items":[{}]}}}`, `{"a":1,"b":[]}`)
	f.Add(noteSchema, `{"title":"a"}`)
	f.Add(looseSchema, `{"inner":{"text":"a"}}`)
	f.Add(`{"type":"object","$ref":"#"}`, `{}`)
	f.Add(`{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a","type":"object"}}}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, schema, in string) {
		s, err := tool.NewSchemas([]tool.Definition{{Name: "t", InputSchema: json.RawMessage(schema)}})
		if (s == nil) == (err == nil) {
			t.Fatalf("both or none of schemas and %v", err)
		}
		if err == nil {
			if got, err := s[0].Arguments(json.RawMessage(in)); (got == nil) == (err == nil) {
				t.Fatalf("both or none of %q and %v", got, err)
			}
		}
	})
}

func BenchmarkArguments(b *testing.B) {
	s := schemas(b, noteSchema, "")
	in := json.RawMessage(`{"title":"a","count":3,"tags":["x","y"],"labels":{"a":"b"},"place":{"Lat":1.5}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Arguments(in); err != nil {
			b.Fatal(err)
		}
	}
}
