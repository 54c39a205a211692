package verify_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/internal/verify"
)

func TestParseCases(t *testing.T) {
	want := []verify.Case{
		{Call: verify.Call{Tool: "list", Arguments: json.RawMessage("{}")}, Seed: "testdata"},
		{
			Call: verify.Call{Tool: "add", Arguments: json.RawMessage(`{"title":"Milk","n":1}`)}, Seed: "testdata/full", Note: "one more",
			Before: []verify.Call{{Tool: "add", Arguments: json.RawMessage(`{"title":"Eggs"}`)}},
		},
	}
	for name, text := range map[string]string{
		"cases.yaml": `- tool: list
- tool: add
  arguments: {title: Milk, n: 1}
  seed: testdata/full
  before: [{tool: add, arguments: {title: Eggs}}]
  note: one more
`,
		"cases.json": `[{"tool": "list"}, {"tool": "add", "arguments": {"title": "Milk", "n": 1}, "seed": "testdata/full",
  "before": [{"tool": "add", "arguments": {"title": "Eggs"}}], "note": "one more"}]`,
	} {
		got, err := verify.ParseCases(name, []byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestCasesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"tool: add":                                   "cases.yaml:1:1: is a mapping, want a list",
		"- {arguments: {}}":                           "[0].tool: is missing",
		"- {tool: add, args: {}}":                     "[0].args: unknown field; remove it",
		"- {tool: add, argument: {}}":                 "did you mean arguments?",
		"- {tool: add, tool: add}":                    "tool",
		"- {tool: add, arguments: []}":                "[0].arguments: is a list, want a mapping",
		"- {tool: a b}":                               "[0].tool",
		"- {tool: add, seed: ../other}":               "[0].seed",
		"- {tool: add, seed: /etc}":                   "[0].seed",
		"- {tool: add, seed: .}":                      "[0].seed",
		"- {tool: add, before: [{tool: x, seed: y}]}": "[0].before[0].seed: unknown field",
		"- {tool: add, before: [" + strings.Repeat("{tool: x},", 17) + "]}": "more than 16 calls",
		strings.Repeat("- {tool: x}\n", 1001):                               "more than 1000 cases",
	} {
		_, err := verify.ParseCases("cases.yaml", []byte(text))
		e, ok := errors.AsType[*strictyaml.Error](err)
		if !ok || e.Line == 0 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// FuzzParseCases: an error or cases that can be made, never both.
func FuzzParseCases(f *testing.F) {
	f.Add("cases.yaml", "- {tool: add, arguments: {a: 1}, seed: testdata/x, before: [{tool: b}], note: n}\n")
	f.Add("cases.json", `[{"tool":"add","arguments":{"a":1e9}}]`)
	f.Fuzz(func(t *testing.T, name, text string) {
		cases, err := verify.ParseCases(name, []byte(text))
		if err != nil && cases != nil {
			t.Fatal("cases and an error")
		}
		for _, c := range cases {
			for _, call := range append([]verify.Call{c.Call}, c.Before...) {
				var arguments map[string]any
				if json.Unmarshal(call.Arguments, &arguments) != nil || arguments == nil || call.Tool == "" {
					t.Fatalf("%+v", call)
				}
			}
		}
	})
}
