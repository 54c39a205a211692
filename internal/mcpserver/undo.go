package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var undoDefinition = tool.Definition{
	Name:  ToolUndo,
	Title: "Undo a call",
	Description: "Takes back what one call of a tool saved: puts back what it changed or deleted, deletes what it made, and " +
		"withdraws messages that were not sent yet. It does so as a whole or not at all: nothing is done where something has changed since the call. " +
		"An undo is a call, too, and can be undone by its own id unless it withdrew a message.",
	InputSchema: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": ["callId"], "properties": {
	"callId": {"type": "string", "minLength": 1, "maxLength": 128, "description": "id of the call, as ` + ToolChanges + ` lists it"}}}`),
	OutputSchema: json.RawMessage(`{"type": "object", "required": ["callId", "undone", "effects", "changed"], "properties": {
	"callId": {"type": "string", "description": "of the call that was to be undone"},
	"undone": {"type": "boolean"},
	"undoneBy": {"type": "string", "description": "id of the undo, by which it can be undone"},
	"effects": {"type": "array", "items": ` + effectSchema + `},
	"changed": {"type": "array", "description": "what is not as the call left it", "items": {"type": "object", "required": ["object", "how"], "properties": {
		"object": {"type": "string"}, "how": {"type": "string"}}}},
	"moreChanged": {"type": "integer"}}}`),
}

// undone is what an undo answers.
type undone struct {
	CallID      string                `json:"callId"`
	Undone      bool                  `json:"undone"`
	UndoneBy    string                `json:"undoneBy,omitempty"`
	Effects     []capabilities.Effect `json:"effects"`
	Changed     []changed             `json:"changed"`
	MoreChanged int                   `json:"moreChanged,omitempty"`
}

type changed struct {
	Object string          `json:"object"`
	How    undo.Difference `json:"how"`
}

// undo takes back a call of the caller's on a package that is served here.
func (s *Server) undo(ctx context.Context, c hostCall) (*hostAnswer, error) {
	var in struct {
		CallID string `json:"callId"`
	}
	if err := json.Unmarshal(c.arguments, &in); err != nil {
		return nil, err
	}
	r := s.host.Undo(ctx, runtime.UndoRequest{CallID: in.CallID, Principal: c.principal, Packages: s.packages(), Trace: c.trace})
	if r == nil || r.Outcome == runtime.HostError {
		if r == nil {
			r = &runtime.Result{}
		}
		s.log.Error("undo ended in a fault of the host", "call", r.CallID, "error", r.Err)
		return nil, hostFault(partly(r))
	}
	u := undone{CallID: in.CallID, Undone: r.Outcome == runtime.OK, Effects: append([]capabilities.Effect{}, r.Effects...), Changed: []changed{}}
	if e, ok := errors.AsType[*undo.ChangedError](r.Err); ok {
		for _, is := range e.Changed {
			u.Changed = append(u.Changed, changed{is.Object, is.How})
		}
		u.MoreChanged = e.More
	}
	text := texts(r)
	if u.Undone {
		u.UndoneBy = r.CallID
		text = fmt.Sprintf("Undone by call %s.", r.CallID)
	}
	return &hostAnswer{structured: u, text: text, isError: !u.Undone, of: r}, nil
}
