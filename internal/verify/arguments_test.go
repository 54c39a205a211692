package verify_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/tool"
)

func TestCandidates(t *testing.T) {
	for schema, want := range map[string]map[string]string{
		`{"type":"object"}`: {"minimal": `{}`},
		`{"type":"object","examples":[{"a":1},{"a":2}],"default":{"a":3},"properties":{"a":{"type":"integer"}}}`: {
			"example-1": `{"a":1}`, "example-2": `{"a":2}`, "default": `{"a":3}`, "minimal": `{}`,
		},
		`{"type":"object","properties":{"a":{"type":"string","examples":["x"]},"b":{"default":false},"c":{}},"required":["a"]}`: {
			"minimal": `{"a":"x"}`, "filled": `{"a":"x","b":false}`,
		},
		`{"type":"object","properties":{"n":{"type":"integer","minimum":5},"x":{"type":"number","exclusiveMaximum":0.5},"e":{"enum":["q","r"]},
		  "s":{"type":"string","minLength":3},"d":{"type":"string","format":"date"},"p":{"type":"string","pattern":"^c[0-9]{2}(x|y)$"},
		  "t":{"type":["null","boolean"]},"m":{"type":"integer","minimum":7,"multipleOf":5},"k":{"const":9}},
		  "required":["n","x","e","s","d","p","t","m","k"]}`: {
			"minimal": `{"d":"2026-01-02","e":"q","k":9,"m":10,"n":5,"p":"c00x","s":"aaa","t":false,"x":0.49999999999999994}`,
		},
		`{"type":"object","$defs":{"i":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},
		  "properties":{"l":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/i"}},"o":{"anyOf":[{"type":"integer"},{"type":"string"}]}},
		  "required":["l","o"]}`: {"minimal": `{"l":[{"name":"a"}],"o":1}`},
		`{"type":"object","properties":{"x":{"type":"array","minItems":100000}},"required":["x"]}`: {},
	} {
		got := verify.Candidates(schema)
		if !maps.Equal(got, want) {
			t.Errorf("%s:\n%v, want\n%v", schema, got, want)
		}
		s, err := tool.NewSchemas([]tool.Definition{{Name: "t", InputSchema: json.RawMessage(schema)}})
		if err != nil {
			t.Fatal(err)
		}
		for id, arguments := range got {
			if _, err := s[0].Arguments(json.RawMessage(arguments)); err != nil {
				t.Errorf("%s: %s: %v", schema, id, err)
			}
		}
	}
}

// A schema that leads to itself is left alone in bounded time.
func TestCandidatesAreBounded(t *testing.T) {
	schema := `{"type":"object","$defs":{"a":{"type":"object","properties":{"l":{"$ref":"#/$defs/a"},"r":{"$ref":"#/$defs/a"}},"required":["l","r"]}},
	  "properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}`
	if got := verify.Candidates(schema); len(got) != 0 {
		t.Errorf("%d", len(got))
	}
	loop := `{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}`
	if got := verify.Candidates(loop); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// What is found does, and does not without any one of its lines.
func TestFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "n")]
		// Any of these sets does, and so does each that holds one.
		enough := rapid.SliceOfN(rapid.SliceOfDistinct(rapid.SampledFrom(lines), rapid.ID[string]), 1, 3).Draw(t, "enough")
		does := func(have []string) bool {
			return slices.ContainsFunc(enough, func(set []string) bool {
				return !slices.ContainsFunc(set, func(l string) bool { return !slices.Contains(have, l) })
			})
		}
		if does(nil) {
			t.Skip("needs none")
		}
		got, err := verify.Fewest(lines, func(have []string) (bool, error) { return does(have), nil })
		if err != nil || !does(got) {
			t.Fatalf("%v, %v does not do", got, err)
		}
		for _, one := range got {
			if does(slices.DeleteFunc(slices.Clone(got), func(l string) bool { return l == one })) {
				t.Fatalf("%v does without %s", got, one)
			}
		}
	})
}

func TestShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ -~\n]*`), 1, 4).Draw(t, "words")
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+verify.Shell(words)).Output()
		if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Fatalf("%q, %v, want %q", out, err, want)
		}
	})
}
