package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// The tools of the host's own. They act for the principal that calls them, on what
// the packages do that the same server serves.
const (
	ToolPreview = "sandboxd_preview" // what a call would do
	ToolUndo    = runtime.UndoTool   // takes back what a call committed
	ToolChanges = "sandboxd_changes" // lists what calls committed
)

// Host is what the host's own tools need of it; [*runtime.Engine] is one.
type Host interface {
	Undo(ctx context.Context, r runtime.UndoRequest) *runtime.Result
	// Changes returns what a principal's package committed and is kept, the newest
	// first. What cannot be read is left out and told of by the error.
	Changes(ctx context.Context, principal, pkg string, limit int) ([]*undo.Kept, error)
}

// hostTool is a tool of the host's own. It runs no guest but by way of a package's
// call, and its hints are true by what it does: nobody enforces them.
type hostTool struct {
	definition tool.Definition
	hints      capabilities.Effective
	schemas    *tool.Schemas
	serve      func(ctx context.Context, c hostCall) (*hostAnswer, error)
}

// hostCall is one call of a tool of the host's own.
type hostCall struct {
	principal string
	arguments json.RawMessage
	trace     runtime.TraceContext
	declared  []string // capabilities of the client
}

// hostAnswer is what a tool of the host's own answers.
type hostAnswer struct {
	structured any
	text       string
	isError    bool
	of         *runtime.Result // what _meta says is this call's; nil: nothing is said
}

// hints of the host's own tools. None of them reaches out of the host.
var (
	hintsReading = capabilities.Effective{ReadOnly: true, Idempotent: true}
	// Undoing deletes and overwrites what a call left. Undoing the same call again
	// does nothing: it was undone already.
	hintsUndo = capabilities.Effective{Destructive: true, Idempotent: true}
)

// hostEntries returns the host's own tools of those names.
func (s *Server) hostEntries(names []string) ([]*entry, error) {
	var es []*entry
	for _, name := range names {
		var t hostTool
		switch name {
		case ToolPreview:
			t = hostTool{definition: previewDefinition, hints: hintsReading, serve: s.preview}
		case ToolUndo:
			t = hostTool{definition: undoDefinition, hints: hintsUndo, serve: s.undo}
		case ToolChanges:
			t = hostTool{definition: changesDefinition, hints: hintsReading, serve: s.changes}
		default:
			return nil, fmt.Errorf("tool %s: the host has none of that name", name)
		}
		if s.host == nil && name != ToolPreview {
			return nil, fmt.Errorf("tool %s: there is no host that it could ask", name)
		}
		schemas, err := tool.NewSchemas([]tool.Definition{t.definition})
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
		t.schemas = schemas[0]
		es = append(es, &entry{name: name, own: &t})
	}
	return es, nil
}

// serveOwn answers a call of a tool of the host's own.
func (s *Server) serveOwn(ctx context.Context, t *hostTool, c hostCall) (*mcp.CallToolResult, error) {
	arguments, err := t.schemas.Arguments(bytes.TrimSpace(c.arguments))
	if err != nil {
		r := &runtime.Result{Outcome: runtime.Refused, Err: fmt.Errorf("%w: %w", runtime.ErrArguments, err)}
		r.Output = runtime.Explain(t.definition.Name, r)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: reason(r)}}}, nil
	}
	c.arguments = arguments
	a, err := t.serve(ctx, c)
	if err != nil {
		return nil, err
	}
	structured, err := json.Marshal(a.structured)
	if err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{
		IsError: a.isError, StructuredContent: json.RawMessage(structured),
		Content: []mcp.Content{&mcp.TextContent{Text: strings.ToValidUTF8(a.text, "\uFFFD")}},
	}
	if a.of == nil {
		return res, nil
	}
	return res, annotate(res, a.of)
}

// served returns the entries of packages' tools.
func (s *Server) served() map[string]*entry {
	s.tools.mu.RLock()
	defer s.tools.mu.RUnlock()
	out := map[string]*entry{}
	for name, e := range s.tools.byName {
		if e.own == nil {
			out[name] = e
		}
	}
	return out
}

// packages returns the names of the packages that are served, each once.
func (s *Server) packages() []string {
	var names []string
	seen := map[string]bool{}
	for _, e := range s.served() {
		if name := e.pkg.Name(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// effectSchema is that of an effect, open for what is said of it besides.
const effectSchema = `{"type": "object", "required": ["verb", "kind", "object", "bytes"], "properties": {
	"verb": {"enum": ["read", "create", "append", "insert", "overwrite", "delete", "send"]},
	"kind": {"enum": ["file", "key", "row", "http", "outbox"]},
	"object": {"type": "string", "description": "path as the tool sees it, key, or host"},
	"bytes": {"type": "integer"},
	"detail": {"type": "string"},
	"was": {"type": "integer", "description": "bytes that were there"},
	"left": {"type": "integer", "description": "bytes that are there then"},
	"text": {"type": "string", "description": "unified diff"},
	"note": {"type": "string", "description": "why there is no diff"}}}`
