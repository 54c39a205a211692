package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// register puts definitions into a real MCP server, which ends the process
// over a definition that it does not like.
func register(t *testing.T, tools []Definition) {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	for _, d := range tools {
		mt := &mcp.Tool{Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema}
		if d.OutputSchema != nil {
			mt.OutputSchema = d.OutputSchema
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("the server ends over an accepted definition: %v\n%s", r, d.InputSchema)
				}
			}()
			s.AddTool(mt, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		}()
	}
}

// panics reports whether a server ends over an input schema.
func panics(schema string) (ended bool) {
	defer func() { ended = recover() != nil }()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(schema)}, nil)
	return false
}

func TestHeaderAccepted(t *testing.T) {
	for _, props := range []string{
		`"a":{"type":"string","x-mcp-header":"Region"}`,
		`"a":{"type":"integer","x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"B"}`,
		`"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"X-1"}}}`,
		`"x-mcp-header":{"type":"string"}`,
	} {
		tools, err := described(`{"type":"object","properties":{` + props + `}}`)
		if err != nil {
			t.Errorf("%s: %v", props, err)
		}
		register(t, tools)
	}
}

// TestHeaderRefused lists definitions over which the server ends, all of which
// are refused, and some that it lets through and that say nothing sensible.
func TestHeaderRefused(t *testing.T) {
	prop := func(s string) string { return `{"type":"object","properties":{` + s + `}}` }
	for _, tt := range []struct {
		name, schema string
		ends         bool
	}{
		{"number type", prop(`"a":{"type":"number","x-mcp-header":"A"}`), true},
		{"object type", prop(`"a":{"type":"object","x-mcp-header":"A"}`), true},
		{"no type", prop(`"a":{"x-mcp-header":"A"}`), true},
		{"empty", prop(`"a":{"type":"string","x-mcp-header":""}`), true},
		{"not text", prop(`"a":{"type":"string","x-mcp-header":1}`), true},
		{"null", prop(`"a":{"type":"string","x-mcp-header":null}`), true},
		{"space", prop(`"a":{"type":"string","x-mcp-header":"A B"}`), true},
		{"colon", prop(`"a":{"type":"string","x-mcp-header":"A:"}`), true},
		{"line break", prop(`"a":{"type":"string","x-mcp-header":"A\nB"}`), true},
		{"not ASCII", prop(`"a":{"type":"string","x-mcp-header":"Ä"}`), true},
		{"twice", prop(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`), true},
		{"twice nested", prop(`"a":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"A"}}},"b":{"type":"string","x-mcp-header":"a"}`), true},
		{"below items", prop(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), false},
		{"in definitions", `{"type":"object","$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, false},
		{"at the root", `{"type":"object","x-mcp-header":"A"}`, false},
		{"two types", prop(`"a":{"type":["string"],"x-mcp-header":"A"}`), false},
		{"case", prop(`"a":{"type":"string","X-MCP-Header":"A"}`), false},
		{"no schema", `null`, true},
		{"list", `[]`, true},
		{"text", `"object"`, true},
		{"no type of the schema", `{}`, true},
		{"other type of the schema", `{"type":"string"}`, true},
		{"types of the schema", `{"type":["object"]}`, true},
		{"out of range", `{"type":"object","maximum":1e999}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := described(tt.schema); err == nil {
				t.Errorf("accepted %s", tt.schema)
			}
			if got := panics(tt.schema); got != tt.ends {
				t.Errorf("the server ends: %v, want %v", got, tt.ends)
			}
		})
	}
}

func TestHeaderDeep(t *testing.T) {
	schema := `{"type":"object"}`
	for i := range 20 {
		schema = fmt.Sprintf(`{"type":"object","properties":{"p%d":%s,"h%d":{"type":"string","x-mcp-header":"H%d"}}}`, i, schema, i, i)
	}
	tools, err := described(schema)
	if err != nil {
		t.Fatal(err)
	}
	register(t, tools)
	if _, err := described(strings.Replace(schema, `"H7"`, `"h8"`, 1)); err == nil {
		t.Error("accepted a header that is there twice at different depths")
	}
}
