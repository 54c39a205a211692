package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// block is a content block as the engine wrote it, after it had read it strictly
// and dropped what is not a guest's to say: it is sent as it is. To read it into
// the SDK's types would be to hold it several times.
type block struct {
	mcp.Content // nil: what is sent is raw
	raw         json.RawMessage
}

// MarshalJSON returns the block.
func (b block) MarshalJSON() ([]byte, error) { return b.raw, nil }

// contents returns content blocks as the SDK takes them. It refuses what a tool's
// result may not hold.
func contents(raw []json.RawMessage) ([]mcp.Content, error) {
	out := make([]mcp.Content, 0, len(raw))
	for i, r := range raw {
		kind, err := kindOf(r)
		if err != nil {
			return nil, fmt.Errorf("content %d: %w", i, err)
		}
		switch kind {
		case "text", "image", "audio", "resource_link", "resource":
		default:
			return nil, fmt.Errorf("content %d: type %q: not for results of tools", i, kind)
		}
		out = append(out, block{raw: r})
	}
	return out, nil
}

// kindOf returns the type of a content block. Of one that the engine wrote it is the
// first field: the rest, which may be long, need not be read.
func kindOf(raw json.RawMessage) (string, error) {
	const text = `{"type":"text",`
	if bytes.HasPrefix(raw, []byte(text)) {
		return "text", nil
	}
	var b struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(raw, &b)
	return b.Type, err
}

// guestMeta returns the guest's _meta in a map of its own, without the keys that
// are not a guest's to set.
func guestMeta(m map[string]json.RawMessage) mcp.Meta {
	out := mcp.Meta{}
	for k, v := range m {
		if !reserved(k) && json.Valid(v) {
			out[k] = v
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
