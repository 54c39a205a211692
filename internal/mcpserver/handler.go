package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

// handler returns what the SDK calls for each tools/call. It returns a result
// of its own per call, or a *jsonrpc.Error, and never panics.
func (s *Server) handler(e *entry) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("tool handler panicked", "tool", e.name, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, hostFault("")
			}
		}()
		ctx, release := s.track(ctx)
		defer release()
		r := e.pkg.Call(ctx, runtime.Request{Tool: e.tool.Definition.Name, Arguments: arguments(req)})
		if r == nil {
			s.log.Error("call without a result", "tool", e.name)
			return nil, hostFault("")
		}
		return s.answer(e.name, r)
	}
}

// arguments returns a copy: the engine may hold it past the request.
func arguments(req *mcp.CallToolRequest) json.RawMessage {
	if req == nil || req.Params == nil || string(req.Params.Arguments) == "null" {
		return nil
	}
	return append(json.RawMessage(nil), req.Params.Arguments...)
}

// hostFault is the answer to a call that the host could not carry out. The
// client gets the call's id and nothing else: the cause may name host paths.
func hostFault(id string) error {
	m := "internal error"
	if id != "" {
		m = fmt.Sprintf("internal error in call %s", id)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: m}
}

func refusal(m string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: m}
}
