package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// What one result may hold: clients have their own limits, and some end with an
// exception where these are passed.
const (
	maxContentItems = 1000
	maxDepth        = 64 // objects and arrays in one another
)

var errDepth = errors.New("answer nests too deep")

// depth returns how deep objects and arrays lie in one another in what may be
// JSON.
func depth(b []byte) (deepest int) {
	open, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

// text returns an output of one text content (schema.ts, TextContent).
func text(isError bool, s string) Output {
	return Output{Content: []json.RawMessage{textContent(s)}, IsError: isError}
}

func textContent(s string) json.RawMessage {
	b, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", strings.ToValidUTF8(s, "\uFFFD")})
	if err != nil {
		panic(err) // two strings always marshal
	}
	return b
}

// parseOutput reads what a guest answered: an MCP tool result, which is a JSON
// object with a content array or a structuredContent, or else plain text. It
// returns how many of the guest's _meta keys it dropped because they carry the
// project's prefix.
func parseOutput(b []byte) (out Output, dropped int, err error) {
	b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	if depth(b) > maxDepth {
		return Output{}, 0, errDepth
	}
	fields, ok := resultFields(b)
	if !ok {
		return text(false, strings.TrimSuffix(string(b), "\n")), 0, nil
	}
	if err := json.Unmarshal(fields["content"], &out.Content); fields["content"] != nil && err != nil {
		return Output{}, 0, fmt.Errorf("content: %w", err)
	}
	if len(out.Content) > maxContentItems {
		return Output{}, 0, fmt.Errorf("content: %d items, at most %d", len(out.Content), maxContentItems)
	}
	if raw := fields["isError"]; raw != nil {
		if err := json.Unmarshal(raw, &out.IsError); err != nil {
			return Output{}, 0, fmt.Errorf("isError: %w", err)
		}
	}
	for i, item := range out.Content {
		clean, n, err := cleanContent(item)
		if err != nil {
			return Output{}, 0, fmt.Errorf("content[%d]: %w", i, err)
		}
		out.Content[i], dropped = clean, dropped+n
	}
	if out.Content == nil {
		out.Content = []json.RawMessage{}
	}
	if raw := fields["structuredContent"]; raw != nil && string(raw) != "null" {
		out.StructuredContent = raw
	}
	n, err := out.setMeta(fields["_meta"])
	if err != nil {
		return Output{}, 0, err
	}
	return out, dropped + n, nil
}

// resultFields returns the fields of a JSON object that is meant as a tool
// result.
func resultFields(b []byte) (map[string]json.RawMessage, bool) {
	trimmed := bytes.TrimSpace(b)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(trimmed, &fields) != nil {
		return nil, false
	}
	content := bytes.TrimSpace(fields["content"])
	isArray := len(content) > 0 && content[0] == '['
	_, structured := fields["structuredContent"]
	return fields, isArray || structured && content == nil
}

func (o *Output) setMeta(raw json.RawMessage) (dropped int, err error) {
	if raw == nil || string(raw) == "null" {
		return 0, nil
	}
	if err := json.Unmarshal(raw, &o.Meta); err != nil {
		return 0, fmt.Errorf("_meta: %w", err)
	}
	return guestMeta(o.Meta).dropReserved(), nil
}

// reserved reports whether a _meta key is not a guest's to set.
func reserved(key string) bool {
	return strings.HasPrefix(strings.ToLower(key), MetaPrefix)
}
