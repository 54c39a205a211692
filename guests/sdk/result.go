package sdk

import (
	"encoding/json"
	"fmt"
)

// Result is the answer of a tool (schema.ts, CallToolResult). A handler that
// returns one has full control over it.
type Result struct {
	Content           []Content `json:"content"`
	StructuredContent any       `json:"structuredContent,omitempty"` // an object
	IsError           bool      `json:"isError,omitempty"`
}

// Content is one block of a [Result].
type Content struct {
	Type string `json:"type"` // "text", "image", "audio" or "resource_link"
	// Text is written for text, even when it is empty.
	Text        string `json:"-"`
	Data        []byte `json:"-"` // for image and audio
	MIMEType    string `json:"-"` // for image, audio and resource_link
	URI         string `json:"-"` // for resource_link
	Name        string `json:"-"` // for resource_link
	Description string `json:"-"` // for resource_link
}

// MarshalJSON writes the fields that belong to the type of the block.
func (c Content) MarshalJSON() ([]byte, error) {
	switch c.Type {
	case "text":
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{c.Type, c.Text})
	case "image", "audio":
		return json.Marshal(struct {
			Type     string `json:"type"`
			Data     []byte `json:"data"`
			MIMEType string `json:"mimeType"`
		}{c.Type, c.Data, c.MIMEType})
	case "resource_link":
		return json.Marshal(struct {
			Type        string `json:"type"`
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Description string `json:"description,omitempty"`
			MIMEType    string `json:"mimeType,omitempty"`
		}{c.Type, c.URI, c.Name, c.Description, c.MIMEType})
	}
	return nil, fmt.Errorf("content type %q: unknown", c.Type)
}

// Text returns a result of one text block.
func Text(s string) Result {
	return Result{Content: []Content{{Type: "text", Text: s}}}
}

func failure(err error) Result {
	r := Text(err.Error())
	r.IsError = true
	return r
}

// resultOf turns what a handler returned into a result: text stays text, a
// value is structured content with the same JSON as text for older clients.
func resultOf(v any) Result {
	switch v := v.(type) {
	case Result:
		return v
	case string:
		return Text(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return failure(fmt.Errorf("result: %w", err))
	}
	r := Text(string(b))
	r.StructuredContent = json.RawMessage(b)
	return r
}
