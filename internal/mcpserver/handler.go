package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

// handler returns what the SDK calls for each tools/call of the tool that is
// served under the name. It returns a result of its own per call, or a
// *jsonrpc.Error, and never panics.
func (s *Server) handler(name string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("tool handler panicked", "tool", name, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, hostFault("")
			}
		}()
		e := s.tools.get(name)
		if e == nil {
			return nil, refusal(fmt.Sprintf("unknown tool %q", name))
		}
		c, err := callerOf(req)
		if err != nil {
			s.log.Error("request without a caller", "tool", name, "error", err)
			return nil, hostFault("")
		}
		ctx, release := s.track(ctx, s.flights.find(c.flight))
		defer release()
		if e.own != nil {
			return s.serveOwn(ctx, e.own, hostCall{
				principal: c.principal, arguments: arguments(req), trace: traceOf(req), declared: declared(req, c),
			})
		}
		key, err := idempotencyKey(req)
		if err != nil {
			return nil, refusal(err.Error())
		}
		n := newNotes(ctx, req, name, s.log)
		defer n.close()
		r := s.call(ctx, e, runtime.Request{
			Arguments: arguments(req),
			Principal: c.principal,
			Trace:     traceOf(req),
			Notify:    n.notify(),

			ClientCapabilities: declared(req, c),
			IdempotencyKey:     key,
		})
		if r == nil {
			s.log.Error("call without a result", "tool", name)
			return nil, hostFault("")
		}
		return s.answer(name, req.ProtocolVersion(), r)
	}
}

// call calls the tool. A package that was closed before the call began, because
// another one serves the tool since, costs the client nothing.
func (s *Server) call(ctx context.Context, e *entry, r runtime.Request) *runtime.Result {
	for {
		r.Tool = e.tool.Definition.Name
		res := e.pkg.Call(ctx, r)
		if res == nil || res.Outcome != runtime.Refused || !errors.Is(res.Err, runtime.ErrClosed) {
			return res
		}
		next := s.tools.get(e.name)
		if next == nil || next.pkg == e.pkg {
			return res
		}
		e = next
	}
}

// idempotencyKey returns the key that the client's program gives the call in
// _meta, empty where it gives none. One that is none is the program's mistake, not
// the model's: an error of the protocol.
func idempotencyKey(req *mcp.CallToolRequest) (string, error) {
	if req.Params == nil {
		return "", nil
	}
	v, there := req.Params.Meta[metaKey]
	if !there {
		return "", nil
	}
	key, ok := v.(string)
	if !ok || key == "" || len(key) > runtime.MaxIdempotencyKey {
		return "", fmt.Errorf("_meta %s: not a text of 1 to %d bytes", metaKey, runtime.MaxIdempotencyKey)
	}
	return key, nil
}

// arguments returns a copy: the engine may hold it past the request.
func arguments(req *mcp.CallToolRequest) json.RawMessage {
	if req.Params == nil || string(req.Params.Arguments) == "null" {
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
