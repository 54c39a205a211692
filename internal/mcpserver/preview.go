package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var previewDefinition = tool.Definition{
	Name:  ToolPreview,
	Title: "Preview a call",
	Description: "Runs a tool of this server without saving anything, and shows what the call would leave: " +
		"files and keys that it would change with their differences, messages that it would send, and whether the tool would be stopped " +
		"because it breaks its own annotations. The call itself is to be made afterwards as usual.",
	InputSchema: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": ["tool"], "properties": {
	"tool": {"type": "string", "maxLength": 128, "description": "name of the tool, as this server lists it"},
	"arguments": {"type": "object", "description": "the arguments of the call"}}}`),
	OutputSchema: json.RawMessage(`{"type": "object", "required": ["callId", "tool", "outcome", "effects", "violation", "denials"], "properties": {
	"callId": {"type": "string", "description": "of the dry run, as the host's log names it"},
	"tool": {"type": "string"},
	"outcome": {"enum": ["ok", "tool_error", "violation", "refused", "timeout", "limit", "conflict"]},
	"effects": {"type": "array", "items": ` + effectSchema + `},
	"more": {"type": "integer", "description": "effects that are not shown"},
	"violation": {"type": ["object", "null"], "description": "what the tool's own annotations exclude"},
	"denials": {"type": "array", "items": {"type": "object"}},
	"answer": {"type": "string", "description": "text that the tool would answer"}}}`),
}

// previewText bounds the differences in an answer, in bytes: it has them twice.
const previewText = 64 << 10

// previewed is what a preview answers.
type previewed struct {
	CallID    string                  `json:"callId"`
	Tool      string                  `json:"tool"`
	Outcome   runtime.Outcome         `json:"outcome"`
	Effects   []undo.Item             `json:"effects"`
	More      int                     `json:"more,omitempty"`
	Violation *capabilities.Violation `json:"violation"`
	Denials   []capabilities.Denial   `json:"denials"`
	Answer    string                  `json:"answer,omitempty"`
}

// preview runs a package's tool and commits nothing.
func (s *Server) preview(ctx context.Context, c hostCall) (*hostAnswer, error) {
	var in struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(c.arguments, &in); err != nil {
		return nil, err
	}
	e := s.served()[in.Tool]
	if e == nil {
		return &hostAnswer{
			isError: true, text: fmt.Sprintf("No package here has a tool %q; tools/list has those that there are.", in.Tool),
			structured: previewed{Tool: in.Tool, Outcome: runtime.Refused, Effects: []undo.Item{}, Denials: []capabilities.Denial{}},
		}, nil
	}
	r := s.call(ctx, e, runtime.Request{
		Arguments: in.Arguments, Principal: c.principal, Trace: c.trace, ClientCapabilities: c.declared,
		Show: &undo.Show{MaxText: previewText},
	})
	if r == nil {
		r = &runtime.Result{}
	}
	switch r.Outcome {
	case runtime.OK, runtime.ToolError, runtime.Violation, runtime.Refused, runtime.Timeout, runtime.Limit, runtime.Conflict:
		return showPreview(in.Tool, r), nil
	case runtime.HostError:
	}
	s.log.Error("preview ended in a fault of the host", "tool", in.Tool, "call", r.CallID, "error", r.Err)
	return nil, hostFault(r.CallID)
}

// showPreview returns what a dry run came to. A violation or an error of the tool
// is what the preview was to find, no error of its own.
func showPreview(name string, r *runtime.Result) *hostAnswer {
	p := previewed{
		CallID: r.CallID, Tool: name, Outcome: r.Outcome, Violation: r.Violation,
		Effects: []undo.Item{}, Denials: append([]capabilities.Denial{}, r.Denials...), Answer: texts(r),
	}
	d := r.Diff
	if d == nil { // the guest did not come to its end
		d = &undo.Diff{}
		for _, e := range r.Effects {
			if e.Verb != capabilities.Read {
				d.Items = append(d.Items, undo.Item{Effect: e})
			}
		}
	}
	p.Effects, p.More = append(p.Effects, d.Items...), d.More
	var b strings.Builder
	fmt.Fprintf(&b, "Preview of %s, nothing was saved. Outcome: %s.\n", name, r.Outcome)
	if p.Answer != "" {
		fmt.Fprintf(&b, "It would answer: %s\n", p.Answer)
	}
	if len(p.Effects) == 0 {
		b.WriteString("It would change nothing.")
	} else {
		fmt.Fprintf(&b, "%s\n%s", changing(r.Outcome), d)
	}
	_, busy := errors.AsType[*runtime.BusyError](r.Err)
	return &hostAnswer{
		structured: p, text: b.String(),
		isError: busy || r.Outcome == runtime.Refused || r.Outcome == runtime.Conflict,
	}
}

// changing says of the effects below whether they would stay.
func changing(o runtime.Outcome) string {
	if o == runtime.OK {
		return "It would leave:"
	}
	return "It tried this, which would not be saved:"
}

// texts returns the texts of an answer.
func texts(r *runtime.Result) string {
	var lines []string
	for _, raw := range r.Output.Content {
		var c struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &c) == nil && c.Type == "text" {
			lines = append(lines, c.Text)
		}
	}
	return strings.Join(lines, "\n")
}
