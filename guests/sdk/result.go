package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Result is the answer of a tool (schema.ts, CallToolResult). A handler that
// returns one has full control over it.
type Result struct {
	Content           []Content      `json:"content"`
	StructuredContent any            `json:"structuredContent,omitempty"` // an object
	IsError           bool           `json:"isError,omitempty"`
	Meta              map[string]any `json:"_meta,omitempty"` // keys under the host's own prefix are dropped
}

// Content is one block of a [Result].
type Content struct {
	Type        string         `json:"-"` // "text", "image", "audio", "resource" or "resource_link"
	Text        string         `json:"-"` // for text; written even when it is empty
	Data        []byte         `json:"-"` // for image and audio
	MIMEType    string         `json:"-"` // for image, audio and resource_link
	Resource    *Resource      `json:"-"` // for resource
	URI         string         `json:"-"` // for resource_link
	Name        string         `json:"-"` // for resource_link
	Title       string         `json:"-"` // for resource_link
	Description string         `json:"-"` // for resource_link
	Meta        map[string]any `json:"-"` // for all
}

// Resource is a resource with its contents (schema.ts, TextResourceContents and
// BlobResourceContents).
type Resource struct {
	URI      string
	MIMEType string
	Text     string // the contents, where Blob is nil
	Blob     []byte
	Meta     map[string]any
}

// MarshalJSON writes the text, or the blob where there is one.
func (r Resource) MarshalJSON() ([]byte, error) {
	type common struct {
		URI      string         `json:"uri"`
		MIMEType string         `json:"mimeType,omitempty"`
		Meta     map[string]any `json:"_meta,omitempty"`
	}
	c := common{r.URI, r.MIMEType, r.Meta}
	if r.Blob != nil {
		return json.Marshal(struct {
			common
			Blob []byte `json:"blob"`
		}{c, r.Blob})
	}
	return json.Marshal(struct {
		common
		Text string `json:"text"`
	}{c, r.Text})
}

// MarshalJSON writes the fields that belong to the type of the block.
func (c Content) MarshalJSON() ([]byte, error) {
	type meta struct {
		Meta map[string]any `json:"_meta,omitempty"`
	}
	m := meta{c.Meta}
	switch c.Type {
	case "text":
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
			meta
		}{c.Type, c.Text, m})
	case "image", "audio":
		return json.Marshal(struct {
			Type     string `json:"type"`
			Data     []byte `json:"data"`
			MIMEType string `json:"mimeType"`
			meta
		}{c.Type, c.Data, c.MIMEType, m})
	case "resource":
		if c.Resource == nil {
			return nil, fmt.Errorf("content type %q: Resource is missing", c.Type)
		}
		return json.Marshal(struct {
			Type     string    `json:"type"`
			Resource *Resource `json:"resource"`
			meta
		}{c.Type, c.Resource, m})
	case "resource_link":
		return json.Marshal(struct {
			Type        string `json:"type"`
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Title       string `json:"title,omitempty"`
			Description string `json:"description,omitempty"`
			MIMEType    string `json:"mimeType,omitempty"`
			meta
		}{c.Type, c.URI, c.Name, c.Title, c.Description, c.MIMEType, m})
	}
	return nil, fmt.Errorf("content type %q: unknown", c.Type)
}

// encoded is JSON of encoding/json, which is not looked at again.
type encoded []byte

// MarshalJSON returns it.
func (e encoded) MarshalJSON() ([]byte, error) { return e, nil }

// json returns the result as JSON: what [json.Marshal] makes of it.
func (r Result) json() ([]byte, error) {
	structured, own := r.StructuredContent.(encoded)
	if len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Meta != nil || r.Meta != nil || !own && r.StructuredContent != nil {
		return json.Marshal(r)
	}
	text := r.Content[0].Text
	b := append(make([]byte, 0, len(text)+len(structured)+128), `{"content":[{"type":"text","text":`...)
	b = append(appendQuoted(b, text), "}]"...)
	if own {
		b = append(append(b, `,"structuredContent":`...), structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), nil
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

// texter is structured content that has a text of its own.
type texter interface{ Text() string }

// resultOf turns what a handler returned into a result: text stays text, a
// value is structured content with the same JSON as text for older clients, or
// with a text of its own. s is the schema of its type, nil for none.
func resultOf(s *schema, v any) Result {
	switch v := v.(type) {
	case Result:
		return v
	case string:
		return Text(v)
	}
	b, err := marshal(s, v)
	if err != nil {
		return failure(fmt.Errorf("result: %w", err))
	}
	text := string(b)
	if t, ok := v.(texter); ok {
		text = t.Text()
	}
	r := Text(text)
	r.StructuredContent = encoded(b)
	return r
}

// marshal is [json.Marshal].
func marshal(s *schema, v any) ([]byte, error) {
	if s != nil {
		if b, ok := s.write(nil, reflect.ValueOf(v)); ok {
			return b, nil
		}
	}
	return json.Marshal(v)
}
