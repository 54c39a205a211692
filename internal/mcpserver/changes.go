package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var changesDefinition = tool.Definition{
	Name:  ToolChanges,
	Title: "List recent changes",
	Description: "Lists what recent calls of this server's tools changed, the newest first: the id of each call, its tool and time, what it " +
		"changed, and whether " + ToolUndo + " can take it back, as long as nobody has changed the same since.",
	InputSchema: json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {
	"limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "how many calls; 20 by default"}}}`),
	OutputSchema: json.RawMessage(`{"type": "object", "required": ["changes"], "properties": {
	"changes": {"type": "array", "items": {"type": "object", "required": ["callId", "tool", "package", "time", "effects", "undoable"], "properties": {
		"callId": {"type": "string"},
		"tool": {"type": "string"},
		"package": {"type": "string"},
		"time": {"type": "string", "format": "date-time"},
		"effects": {"type": "array", "items": ` + effectSchema + `},
		"moreEffects": {"type": "integer"},
		"undoable": {"type": "boolean", "description": "all that undoing takes is kept, and it was not undone yet"},
		"why": {"type": "string", "description": "why it is not"},
		"undoneBy": {"type": "string", "description": "call that undid this one"},
		"undoes": {"type": "string", "description": "call that this one undid"}}}}}}`),
}

const (
	defaultChanges = 20
	shownEffects   = 20 // of each change
)

// change is one call in a list of changes.
type change struct {
	CallID      string                `json:"callId"`
	Tool        string                `json:"tool"`
	Package     string                `json:"package"`
	Time        time.Time             `json:"time"`
	Effects     []capabilities.Effect `json:"effects"`
	MoreEffects int                   `json:"moreEffects,omitempty"`
	Undoable    bool                  `json:"undoable"`
	Why         string                `json:"why,omitempty"`
	UndoneBy    string                `json:"undoneBy,omitempty"`
	Undoes      string                `json:"undoes,omitempty"`
}

// changes lists what the caller's calls of the packages that are served here left.
func (s *Server) changes(ctx context.Context, c hostCall) (*hostAnswer, error) {
	in := struct {
		Limit int `json:"limit"`
	}{defaultChanges}
	if err := json.Unmarshal(c.arguments, &in); err != nil {
		return nil, err
	}
	var kept []*undo.Kept
	for _, pkg := range s.packages() {
		list, err := s.host.Changes(ctx, c.principal, pkg, in.Limit)
		if errors.Is(err, runtime.ErrNoStore) {
			break
		}
		if err != nil {
			s.log.Error("changes cannot be read", "package", pkg, "error", err)
			if len(list) == 0 {
				return nil, hostFault("")
			}
		}
		kept = append(kept, list...)
	}
	slices.SortFunc(kept, func(a, b *undo.Kept) int { return b.Time.Compare(a.Time) })
	names := s.Names()
	list := []change{}
	for _, k := range kept[:min(len(kept), in.Limit)] {
		list = append(list, changeOf(k, names))
	}
	return &hostAnswer{structured: map[string]any{"changes": list}, text: changeLines(list)}, nil
}

// changeOf returns a change under the name that clients use for its tool.
func changeOf(k *undo.Kept, names map[string]map[string]string) change {
	shown := k.Effects[:min(len(k.Effects), shownEffects)]
	c := change{
		CallID: k.CallID, Tool: k.Tool, Package: k.Package, Time: k.Time, Effects: append([]capabilities.Effect{}, shown...),
		MoreEffects: len(k.Effects) - len(shown) + k.MoreEffects, UndoneBy: k.UndoneBy, Undoes: k.Undoes,
	}
	if name, ok := names[k.Package][k.Tool]; ok {
		c.Tool = name
	}
	switch {
	case k.UndoneBy != "":
		c.Why = "undone already"
	case !k.Complete():
		c.Why = "not all that it replaced could be kept"
	default:
		c.Undoable = true
	}
	return c
}

// changeLines returns a line for each change. What was changed is in the
// structured content: its names are guests' to choose.
func changeLines(list []change) string {
	if len(list) == 0 {
		return "No changes are kept."
	}
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%s  %s  %s: %s; ", c.CallID, c.Time.UTC().Format(time.RFC3339), c.Tool, counted(c))
		switch {
		case c.Undoes != "":
			fmt.Fprintf(&b, "undid %s; ", c.Undoes)
		case c.UndoneBy != "":
			fmt.Fprintf(&b, "undone by %s; ", c.UndoneBy)
		}
		if c.Undoable {
			b.WriteString("can be undone\n")
		} else {
			fmt.Fprintf(&b, "cannot be undone: %s\n", c.Why)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// counted says how many effects of which verb there are.
func counted(c change) string {
	count := map[capabilities.Verb]int{}
	var order []capabilities.Verb
	for _, e := range c.Effects {
		if count[e.Verb]++; count[e.Verb] == 1 {
			order = append(order, e.Verb)
		}
	}
	var parts []string
	for _, v := range order {
		parts = append(parts, fmt.Sprintf("%s %d", v, count[v]))
	}
	if c.MoreEffects > 0 {
		parts = append(parts, fmt.Sprintf("%d more", c.MoreEffects))
	}
	return strings.Join(parts, ", ")
}
