package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// contents converts content blocks. It refuses what a tool's result may not
// hold, and drops the _meta keys that are not a guest's to set.
func contents(raw []json.RawMessage) ([]mcp.Content, error) {
	wire, err := json.Marshal(struct {
		Content []json.RawMessage `json:"content"`
	}{raw})
	if err != nil {
		return nil, err
	}
	// The SDK has no exported reader of content blocks other than a result's.
	var r mcp.CallToolResult
	if err := json.Unmarshal(wire, &r); err != nil {
		return nil, err
	}
	out := make([]mcp.Content, 0, len(r.Content))
	for i, c := range r.Content {
		if err := clean(c); err != nil {
			return nil, fmt.Errorf("content %d: %w", i, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func clean(c mcp.Content) error {
	switch c := c.(type) {
	case *mcp.TextContent:
		strip(c.Meta)
	case *mcp.ImageContent:
		strip(c.Meta)
	case *mcp.AudioContent:
		strip(c.Meta)
	case *mcp.ResourceLink:
		strip(c.Meta)
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return errors.New("resource: missing")
		}
		strip(c.Meta)
		strip(c.Resource.Meta)
	default:
		return fmt.Errorf("%T: not for results of tools", c)
	}
	return nil
}

func strip(m mcp.Meta) {
	for k := range m {
		if reserved(k) {
			delete(m, k)
		}
	}
}

// guestMeta copies the guest's _meta, without the keys that are not its to set.
func guestMeta(m map[string]json.RawMessage) mcp.Meta {
	out := mcp.Meta{}
	for k, v := range m {
		if !reserved(k) && json.Valid(v) {
			out[k] = append(json.RawMessage(nil), v...)
		}
	}
	return out
}

// reserved reports whether a _meta key belongs to the protocol: under 2026-07-28
// a result's server identity is such a key, and the SDK keeps one that is there
// already. The project's own keys were dropped by the engine.
func reserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	labels := strings.Split(strings.ToLower(prefix), ".")
	return len(labels) > 1 && (labels[1] == "mcp" || labels[1] == "modelcontextprotocol")
}
