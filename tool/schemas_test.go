package tool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

const noteSchema = `{
	"type": "object",
	"properties": {
		"title": {"type": "string", "minLength": 1, "maxLength": 8},
		"count": {"type": "integer", "minimum": 0, "maximum": 9},
		"ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
		"mode": {"enum": ["fast", "careful", 3]},
		"kind": {"const": "note"},
		"id": {"type": ["integer", "null"]},
		"tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}, "maxItems": 2},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"place": {"$ref": "#/$defs/place"},
		"either": {"oneOf": [{"type": "string"}, {"type": "integer"}]}
	},
	"required": ["title"],
	"additionalProperties": false,
	"$defs": {"place": {"type": "object", "properties": {"Lat": {"type": "number"}}, "required": ["Lat"]}}
}`

func schemas(t testing.TB, in, out string) *tool.Schemas {
	t.Helper()
	all, err := tool.NewSchemas([]tool.Definition{{Name: "t", InputSchema: json.RawMessage(in), OutputSchema: json.RawMessage(out)}})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestArgumentsAccepted(t *testing.T) {
	s := schemas(t, noteSchema, "")
	for _, c := range []struct{ in, want string }{
		{` { "title" : "a" } `, `{"title":"a"}`},
		{`{"title":"\u0061\/\ud83d\ude00\n"}`, `{"title":"a/😀\u000a"}`},
		{`{"title":"a","count":3.0,"ratio":1e-1,"id":12345678901234567890}`, `{"title":"a","count":3.0,"ratio":1e-1,"id":12345678901234567890}`},
		{`{"title":"a","count":0e-999,"ratio":1e-305}`, `{"title":"a","count":0e-999,"ratio":1e-305}`},
		{`{"title":"a","mode":3.0,"kind":"note","id":null}`, `{"title":"a","mode":3.0,"kind":"note","id":null}`},
		{`{"title":"a","labels":{"Title":"free"},"place":{"Lat":1,"free":[]}}`, `{"title":"a","labels":{"Title":"free"},"place":{"Lat":1,"free":[]}}`},
		{`{"tags":["b","a"],"title":"<&>","either":1}`, `{"tags":["b","a"],"title":"<&>","either":1}`},
	} {
		got, err := s.Arguments(json.RawMessage(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	s := schemas(t, noteSchema, "")
	for _, c := range []struct{ in, want string }{
		{``, `arguments/title: is missing; send it`},
		{`[]`, `arguments: is an array; send an object`},
		{`null`, `arguments: is null; send an object`},
		{`{"title":`, `arguments: not JSON at byte 9; send one JSON value`},
		{`{} {}`, `arguments: not JSON at byte 4; send one JSON value`},
		{"{\"title\":\"\xff\"}", `arguments: not UTF-8; encode text as UTF-8`},
		{`{"title":"\ud800"}`, `arguments/title: holds half of a surrogate pair; write the character itself`},
		{`{"title":"\udc00\ud800"}`, `arguments/title: holds half of a surrogate pair; write the character itself`},
		{`{"title":"\ud800\u0041"}`, `arguments/title: holds half of a surrogate pair; write the character itself`},
		{`{"title":"a","title":"b"}`, `arguments/title: is there twice; send it once`},
		{`{"title":"a","t\u0069tle":"b"}`, `arguments/title: is there twice; send it once`},
		{`{"title":"a","Title":"b"}`, `arguments/Title: differs from "title" by case only; send one of them`},
		{`{"title":"a","labels":{"k":"x","\u212a":"y"}}`, "arguments/labels/\u212a: differs from \"k\" by case only; send one of them"},
		{`{"Title":"a"}`, `arguments/Title: another spelling of "title"; send "title"`},
		{`{"tıtle":"a"}`, `arguments/title: is missing; send it`},
		{`{"title":"a","place":{"lat":1}}`, `arguments/place/lat: another spelling of "Lat"; send "Lat"`},
		{`{"title":1}`, `arguments/title: is an integer; send a string`},
		{`{"title":""}`, `arguments/title: is 0 characters, less than 1 characters; send at least 1 characters`},
		{`{"title":"123456789"}`, `arguments/title: is 9 characters, more than 8 characters; send at most 8 characters`},
		{`{"title":"a","count":10}`, `arguments/count: is 10, more than 9; send at most 9`},
		{`{"title":"a","count":1.5}`, `arguments/count: is a number; send an integer`},
		{`{"title":"a","ratio":1}`, `arguments/ratio: is too large; send less than 1`},
		{`{"title":"a","ratio":1e999}`, `arguments/ratio: a number out of the range of 64-bit floats; send it as text`},
		{`{"title":"a","ratio":1e-400}`, `arguments/ratio: a number out of the range of 64-bit floats; send it as text`},
		{`{"title":"a","ratio":-0.00001e-303}`, `arguments/ratio: a number out of the range of 64-bit floats; send it as text`},
		{`{"title":"a","mode":"slow"}`, `arguments/mode: is not a value that is allowed; send "fast" or "careful" or 3`},
		{`{"title":"a","id":"x"}`, `arguments/id: is a string; send an integer or null`},
		{`{"title":"a","tags":["x","Y"]}`, `arguments/tags/1: does not match the pattern; send text that matches ^[a-z]+$`},
		{`{"title":"a","tags":["x","y","z"]}`, `arguments/tags: is 3 items, more than 2 items; send at most 2 items`},
		{`{"title":"a","labels":{"a/b~c":1}}`, `arguments/labels/a~1b~0c: is an integer; send a string`},
		{`{"title":"a","x":1}`, `arguments/x: is unknown; leave it out; known are count, either, id, kind, labels, mode, place, ratio, tags, title`},
		{`{"title":"a","either":true}`, `arguments/either: fits none of the alternatives (oneOf)`},
	} {
		got, err := s.Arguments(json.RawMessage(c.in))
		if e, ok := errors.AsType[*tool.ArgumentsError](err); !ok || e.Error() != c.want || got != nil {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestArgumentsDepth(t *testing.T) {
	s := schemas(t, `{"type":"object"}`, "")
	nested := func(n int) json.RawMessage {
		return json.RawMessage(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
	}
	if _, err := s.Arguments(nested(64)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	for _, n := range []int{65, 100_000} {
		if e, ok := errors.AsType[*tool.ArgumentsError](second(s.Arguments(nested(n)))); !ok {
			t.Errorf("%d levels: %v", n, e)
		}
	}
}

func TestArgumentsValues(t *testing.T) {
	s := schemas(t, `{"type":"object"}`, "")
	list := func(n int) json.RawMessage {
		return json.RawMessage(`{"a":[` + strings.Repeat("0,", n-1) + `0]}`)
	}
	const most = 1<<18 - 2 // the object and the list are values, too
	if _, err := s.Arguments(list(most)); err != nil {
		t.Error(err)
	}
	if _, err := s.Arguments(list(most + 1)); err == nil {
		t.Error("one value too many was accepted")
	}
}

func second[A any](_ A, err error) error { return err }

// Integers are judged exactly, also where a float is not exact.
func TestArgumentsExactIntegers(t *testing.T) {
	s := schemas(t, `{"type":"object","properties":{"id":{"enum":[9007199254740993]},"max":{"maximum":9007199254740992}}}`, "")
	for in, fits := range map[string]bool{
		`{"id":9007199254740993}`:  true,
		`{"id":9007199254740992}`:  false,
		`{"max":9007199254740992}`: true,
		`{"max":9007199254740993}`: false,
	} {
		if _, err := s.Arguments(json.RawMessage(in)); (err == nil) != fits {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestArgumentsEachDialect(t *testing.T) {
	for _, d := range []string{
		"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#",
		"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
		"https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema",
	} {
		s := schemas(t, `{"$schema":"`+d+`","type":"object","properties":{"a":{"type":"string"}}}`, "")
		if _, err := s.Arguments(json.RawMessage(`{"a":"x"}`)); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if _, err := s.Arguments(json.RawMessage(`{"a":1}`)); err == nil {
			t.Errorf("%s: a number was taken for a string", d)
		}
	}
}

func TestDefaultsAreNotFilledIn(t *testing.T) {
	s := schemas(t, `{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`, "")
	if got, err := s.Arguments(nil); err != nil || string(got) != "{}" {
		t.Errorf("got %s, %v", got, err)
	}
}

// A schema whose alternatives lie in one another takes a number of steps that
// doubles with each level of the value. Judging such a value is refused before
// it begins.
func TestArgumentsExplosive(t *testing.T) {
	s := schemas(t, `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"anyOf":[
		{"$ref":"#/$defs/n","required":["x"]},{"$ref":"#/$defs/n","required":["y"]},{"$ref":"#/$defs/n"}]}}}}}`, "")
	for levels, fits := range map[int]bool{6: true, 60: false} {
		in := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
		if _, err := s.Arguments(json.RawMessage(in)); (err == nil) != fits {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	long := schemas(t, `{"type":"object","properties":{"a":{"anyOf":[`+strings.Repeat(`{"pattern":"^b"},`, 300)+`{}]}}}`, "")
	if _, err := long.Arguments(json.RawMessage(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`)); err == nil {
		t.Error("300 alternatives judged a text of 1 MiB")
	}
}

func TestNewSchemasRefused(t *testing.T) {
	for _, in := range []string{
		``, `7`, `{"type":"object","properties":7}`, `{"pattern":"("}`,
		`{"$ref":"#/$defs/none"}`, `{"$ref":"https://example.com/x"}`, `{"patternProperties":{"(":{}}}`,
		`{"Enum":[1]}`, `{"properties":{"a":{"$id":"x"}}}`, `{"$anchor":"a","not":{"$anchor":"a"}}`,
		strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000),
	} {
		if _, err := tool.NewSchemas([]tool.Definition{{Name: "t", InputSchema: json.RawMessage(in)}}); err == nil {
			t.Errorf("%s was compiled", in)
		}
	}
}

// A schema that refers back to itself for one value is refused by the manifest;
// without one, judging ends all the same.
func TestArgumentsCircle(t *testing.T) {
	s := schemas(t, `{"type":"object","allOf":[{"$ref":"#"}]}`, "")
	if _, err := s.Arguments(nil); err == nil {
		t.Error("judged by a schema without end")
	}
}

func TestOutput(t *testing.T) {
	s := schemas(t, `{"type":"object"}`, `{"type":"object","properties":{"words":{"type":"object"},"n":{"type":"integer"}},"required":["n"]}`)
	for _, c := range []struct{ in, want string }{
		{`{"n":1,"words":{"a":1,"A":2},"N":"free"}`, ""},
		{``, "structuredContent: is missing"},
		{`{`, "structuredContent: not JSON at byte 1"},
		{`{}`, "structuredContent/n: is missing"},
		{`{"n":"1"}`, "structuredContent/n: is a string"},
		{`{"n":1,"n":2}`, "structuredContent/n: is there twice"},
	} {
		_, err := s.Output(json.RawMessage(c.in))
		if e, ok := errors.AsType[*tool.OutputError](err); ok != (c.want != "") || ok && e.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
	if _, err := schemas(t, `{"type":"object"}`, "").Output(nil); err != nil {
		t.Errorf("no outputSchema: %v", err)
	}
}
