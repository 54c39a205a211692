package mcpserver

import (
	"encoding/json"
	"errors"
	"log/slog"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

func TestContents(t *testing.T) {
	for raw, ok := range map[string]bool{
		`{"type":"text","text":"a"}`:                                    true,
		`{"type":"image","data":"AAAA","mimeType":"image/png"}`:         true,
		`{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`:         true,
		`{"type":"resource_link","uri":"file:///a","name":"a"}`:         true,
		`{"type":"resource","resource":{"uri":"file:///a","text":"a"}}`: true,
		`{"type":"tool_use","id":"1","name":"a","input":{}}`:            false,
		`{"type":"tool_result","toolUseId":"1","content":[]}`:           false,
		`{"type":"video"}`: false,
		`{}`:               false,
		`null`:             false,
		`"text"`:           false,
		`{`:                false,
	} {
		cs, err := contents([]json.RawMessage{json.RawMessage(raw)})
		if (err == nil) != ok || ok && len(cs) != 1 {
			t.Errorf("%s: %v, %v", raw, cs, err)
		}
	}
}

// TestContentsAreNotCopied: a large block goes to the client as the engine wrote
// it.
func TestContentsAreNotCopied(t *testing.T) {
	raw := json.RawMessage(`{"type":"text","text":"` + strings.Repeat("a", 8<<20) + `"}`)
	r := &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: runtime.Output{Content: []json.RawMessage{raw}, StructuredContent: json.RawMessage(`"` + strings.Repeat("a", 8<<20) + `"`)}}
	s := &Server{log: slog.New(slog.DiscardHandler)}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	res, err := s.answer("t", anyStructured, r)
	goruntime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 1<<20 {
		t.Errorf("%d bytes, %v", took, err)
	}
	if b, err := res.Content[0].MarshalJSON(); err != nil || string(b) != string(raw) {
		t.Errorf("%d bytes are sent, want %d; %v", len(b), len(raw), err)
	}
}

func TestReserved(t *testing.T) {
	for key, want := range map[string]bool{
		"io.modelcontextprotocol/serverInfo": true,
		"IO.ModelContextProtocol/serverInfo": true,
		"com.mcp.tools/x":                    true,
		"com.example.mcp/x":                  false,
		"dev.sandboxd.other/x":               false,
		"com.example/call":                   false,
		"dev.sandboxd":                       false,
		"progressToken":                      false,
	} {
		if got := reserved(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

// Whatever an engine lets through, the client gets a result that marshals, with
// the host's own keys in its _meta, or an error.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"text","text":"a","_meta":{"dev.sandboxd/call":1}}`, `{"a":1}`, "dev.sandboxd/call", `{}`, true)
	f.Add(`{"type":"resource","resource":{"uri":"a","blob":"AA=="}}`, `[`, "a", `"`, false)
	f.Add(`{"type":"text","text":"a","resultType":"input_required"}`, `{"resultType":"input_required","inputRequests":{}}`, "resultType", `"input_required"`, false)
	f.Fuzz(func(t *testing.T, content, structured, key, value string, failed bool) {
		r := &runtime.Result{CallID: "c", Outcome: runtime.OK}
		if failed {
			r.Outcome = runtime.ToolError
		}
		r.Output.Content = []json.RawMessage{json.RawMessage(content)}
		r.Output.StructuredContent = json.RawMessage(structured)
		r.Output.Meta = map[string]json.RawMessage{key: json.RawMessage(value)}
		s := &Server{log: slog.New(slog.DiscardHandler)}
		res, err := s.answer("t", anyStructured, r)
		if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok && rpc.Code == jsonrpc.CodeInternalError {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(res)
		if err != nil {
			t.Fatalf("result does not marshal: %v", err)
		}
		var back mcp.CallToolResult
		if json.Unmarshal([]byte(`{"content":[`+content+`]}`), &back) != nil {
			return // nothing that an engine lets through
		}
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		// A guest cannot make a result that asks the client for something.
		if back.InputRequests != nil || back.RequestState != "" || res.InputRequests != nil || res.RequestState != "" {
			t.Fatalf("asks for input: %s", b)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		for k := range fields {
			if !slices.Contains([]string{"_meta", "content", "structuredContent", "isError"}, k) {
				t.Fatalf("field %s: %s", k, b)
			}
		}
		if !strings.Contains(string(b), `"dev.sandboxd/call":{"id":"c"`) {
			t.Errorf("_meta of %s", b)
		}
		for k := range back.Meta {
			if reserved(k) {
				t.Errorf("reserved key %q in %s", k, b)
			}
		}
	})
}
