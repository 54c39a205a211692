package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// answer returns what the client gets for a call's result: a result that
// shares nothing with any other, or an error with a code of JSON-RPC.
func answer(tool string, r *runtime.Result) (*mcp.CallToolResult, error) {
	var res *mcp.CallToolResult
	switch r.Outcome {
	case runtime.OK, runtime.ToolError:
		res = output(tool, r)
	case runtime.Violation, runtime.Timeout, runtime.Limit, runtime.Conflict:
		res = output(tool, &runtime.Result{Outcome: runtime.ToolError, Output: runtime.Explain(tool, r)})
	case runtime.Refused:
		return nil, refusal(reason(r))
	case runtime.HostError:
		return nil, hostFault(r.CallID)
	default:
		return nil, hostFault(r.CallID)
	}
	if err := annotate(res, r); err != nil {
		return nil, hostFault(r.CallID)
	}
	return res, nil
}

// failure returns a result with isError whose only content is the text.
func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
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
}

// annotate adds the project's keys to the result's _meta.
func annotate(res *mcp.CallToolResult, r *runtime.Result) error {
	c := callMeta{ID: r.CallID, Effects: r.Effects, Committed: r.Committed}
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

// output returns what is in the result's output.
func output(tool string, r *runtime.Result) *mcp.CallToolResult {
	res := &mcp.CallToolResult{IsError: r.Outcome == runtime.ToolError || r.Output.IsError, Meta: guestMeta(r.Output.Meta)}
	content, err := contents(r.Output.Content)
	if err == nil && len(r.Output.StructuredContent) > 0 {
		if !json.Valid(r.Output.StructuredContent) {
			err = errors.New("structuredContent: not JSON")
		}
		res.StructuredContent = slices.Clone(r.Output.StructuredContent)
	}
	if err != nil {
		return failure(unreadable(tool, r))
	}
	res.Content = content
	return res
}

func unreadable(tool string, r *runtime.Result) string {
	if r.Committed {
		return fmt.Sprintf("%s gave an answer that is not a valid MCP tool result. What it did was saved.", tool)
	}
	return fmt.Sprintf("%s gave an answer that is not a valid MCP tool result. Nothing was saved.", tool)
}
