package mcpserver_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// Structured content that is no object goes only to clients of a version that
// has it so. The others keep the content, or get the value as a text where there
// is none.
func TestStructuredContentOfVersions(t *testing.T) {
	const old = "2025-11-25"
	for name, c := range map[string]struct{ version, structured, content, want string }{
		"new, list":           {"2026-07-28", `[1,2]`, "", `{"content":[],"structuredContent":[1,2]}`},
		"new, object":         {"2026-07-28", `{"a":1}`, "", `{"content":[],"structuredContent":{"a":1}}`},
		"old, object":         {old, `{"a":1}`, "", `{"content":[],"structuredContent":{"a":1}}`},
		"old, list":           {old, `[1,2]`, "", `{"content":[{"type":"text","text":"[1,2]"}]}`},
		"old, text":           {old, `"<str>"`, "", `{"content":[{"type":"text","text":"\"\u003cstr\u003e\""}]}`},
		"old, list and text":  {old, `[1,2]`, "one, two", `{"content":[{"type":"text","text":"one, two"}]}`},
		"first, list and tex": {"2024-11-05", `[1,2]`, "one, two", `{"content":[{"type":"text","text":"one, two"}]}`},
	} {
		for _, overHTTP := range []bool{false, true} {
			p := &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{newTool("a", capabilities.Claim{})}}
			p.call = func(context.Context, runtime.Request) *runtime.Result {
				r := &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: runtime.Output{StructuredContent: json.RawMessage(c.structured)}}
				if c.content != "" {
					r.Output.Content = []json.RawMessage{textContent(c.content)}
				}
				return r
			}
			session, err := clientOf(nil).Connect(t.Context(), transportTo(t, newServer(t, p), overHTTP), &mcp.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := json.Marshal(struct {
				Content           []mcp.Content `json:"content"`
				StructuredContent any           `json:"structuredContent,omitempty"`
			}{res.Content, res.StructuredContent})
			if err != nil || string(got) != c.want {
				t.Errorf("%s, HTTP %t: %s, %v", name, overHTTP, got, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
