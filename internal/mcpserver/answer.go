package mcpserver

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// answer returns what a client of that version of the protocol gets for a call's
// result: a result that shares nothing with any other that is written to, or an
// error with a code of JSON-RPC. What a stopped call's output says is the
// engine's.
func (s *Server) answer(tool, version string, r *runtime.Result) (*mcp.CallToolResult, error) {
	switch r.Outcome {
	case runtime.OK, runtime.ToolError, runtime.Violation, runtime.Timeout, runtime.Limit, runtime.Conflict:
	case runtime.Refused:
		if c, ok := errors.AsType[*runtime.CapabilityError](r.Err); ok {
			return nil, missingCapability(reason(r), c)
		}
		if !errors.Is(r.Err, runtime.ErrArguments) && !errors.Is(r.Err, runtime.ErrIdempotencyKey) {
			return nil, refusal(reason(r))
		}
		// What is wrong with its arguments, alone or under its key, is for the model to
		// read and mend, and clients hand it results, not errors of the protocol
		// (SEP-1303).
	case runtime.HostError:
		s.log.Error("call ended in a fault of the host", "tool", tool, "call", r.CallID, "error", r.Err)
		return nil, hostFault(partly(r))
	default:
		s.log.Error("call with an unknown outcome", "tool", tool, "call", r.CallID, "outcome", r.Outcome)
		return nil, hostFault(r.CallID)
	}
	res, err := output(version, r)
	if err == nil {
		err = annotate(res, r)
	}
	if err != nil {
		s.log.Error("result cannot be sent", "tool", tool, "call", r.CallID, "error", err)
		return nil, hostFault(r.CallID)
	}
	return res, nil
}

// partly returns the call's id, with what the client must know of what is left.
func partly(r *runtime.Result) string {
	if r.Partial {
		return r.CallID + "; a part of what it changed may be saved"
	}
	return r.CallID
}

// reason returns what the engine says about a refusal. No guest has run then,
// so the text of the result is the host's own.
func reason(r *runtime.Result) string {
	for _, raw := range r.Output.Content {
		var c struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &c) == nil && c.Text != "" {
			return c.Text
		}
	}
	return "call refused"
}

// callMeta is what _meta says about a call.
type callMeta struct {
	ID        string                `json:"id"`
	Effects   []capabilities.Effect `json:"effects"`
	Committed bool                  `json:"committed"`
	// Remembered is set where all of this is the first call's under the same
	// idempotency key, and nothing was done now.
	Remembered bool `json:"remembered,omitempty"`
}

// annotate adds the project's keys to the result's _meta.
func annotate(res *mcp.CallToolResult, r *runtime.Result) error {
	c := callMeta{ID: r.CallID, Effects: r.Effects, Committed: r.Committed, Remembered: r.Remembered}
	if c.Effects == nil {
		c.Effects = []capabilities.Effect{}
	}
	call, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if res.Meta == nil {
		res.Meta = mcp.Meta{}
	}
	res.Meta[metaCall] = json.RawMessage(call)
	if r.Outcome != runtime.Violation || r.Violation == nil {
		return nil
	}
	v, err := json.Marshal(r.Violation)
	if err != nil {
		return err
	}
	res.Meta[metaViolation] = json.RawMessage(v)
	return nil
}

// output returns what is in the result's output. The engine has checked it: an
// error is a fault of the host.
func output(version string, r *runtime.Result) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{IsError: r.Outcome != runtime.OK || r.Output.IsError, Meta: guestMeta(r.Output.Meta)}
	content, err := contents(r.Output.Content)
	if err != nil {
		return nil, err
	}
	res.Content = content
	structured := r.Output.StructuredContent
	if len(structured) == 0 {
		return res, nil
	}
	if !json.Valid(structured) {
		return nil, errors.New("structuredContent: not JSON")
	}
	if version >= anyStructured || structured[0] == '{' {
		res.StructuredContent = structured
	} else if len(content) == 0 {
		res.Content = []mcp.Content{&mcp.TextContent{Text: string(structured)}}
	}
	return res, nil
}

// anyStructured is the first version whose structured content may be any value
// (SEP-2106). Clients of those before refuse a result where it is no object, so
// that theirs has the content alone, or else the value as a text, as servers
// write it for clients that know no structured content.
const anyStructured = "2026-07-28"
