package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
)

// contentBlock is a ContentBlock of MCP (schema.ts): what is read from a guest
// is written again from these fields, so that whoever parses it next reads the
// same thing.
type contentBlock struct {
	Type        string             `json:"type"`
	Text        *string            `json:"text,omitempty"`
	Data        *[]byte            `json:"data,omitempty"` // base64
	MIMEType    string             `json:"mimeType,omitempty"`
	URI         string             `json:"uri,omitempty"`
	Name        string             `json:"name,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Size        *int64             `json:"size,omitempty"`
	Resource    *resourceContents  `json:"resource,omitempty"`
	Annotations *contentAnnotation `json:"annotations,omitempty"`
	Meta        guestMeta          `json:"_meta,omitempty"`
}

// resourceContents is TextResourceContents or BlobResourceContents of MCP.
type resourceContents struct {
	URI      string    `json:"uri"`
	MIMEType string    `json:"mimeType,omitempty"`
	Text     *string   `json:"text,omitempty"`
	Blob     *[]byte   `json:"blob,omitempty"` // base64
	Meta     guestMeta `json:"_meta,omitempty"`
}

// contentAnnotation is Annotations of MCP: for whom a content is.
type contentAnnotation struct {
	Audience     []string `json:"audience,omitempty"`
	Priority     float64  `json:"priority,omitempty"`
	LastModified string   `json:"lastModified,omitempty"`
}

// guestMeta is a _meta object that a guest wrote.
type guestMeta map[string]json.RawMessage

// dropReserved deletes the keys under the project's prefix and returns how
// many there were.
func (m guestMeta) dropReserved() (dropped int) {
	for k := range m {
		if reserved(k) {
			delete(m, k)
			dropped++
		}
	}
	return dropped
}

// errContent is matched by what is wrong with a content block.
var errContent = errors.New("content block")

// cleanContent checks one content block of a guest, writes it again from its
// known fields, and returns how many reserved _meta keys it dropped.
func cleanContent(raw json.RawMessage) (clean json.RawMessage, dropped int, err error) {
	var b contentBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errContent, err)
	}
	if err := b.check(); err != nil {
		return nil, 0, err
	}
	dropped = b.Meta.dropReserved()
	if b.Resource != nil {
		dropped += b.Resource.Meta.dropReserved()
	}
	clean, err = json.Marshal(b)
	return clean, dropped, err
}

func (b contentBlock) check() error {
	missing := func(field string) error {
		return fmt.Errorf("%w: %s: required in %s content", errContent, field, b.Type)
	}
	switch b.Type {
	case "text":
		if b.Text == nil {
			return missing("text")
		}
	case "image", "audio":
		if b.Data == nil || b.MIMEType == "" {
			return missing("data and mimeType")
		}
	case "resource_link":
		if b.URI == "" || b.Name == "" {
			return missing("uri and name")
		}
	case "resource":
		if b.Resource == nil || b.Resource.URI == "" || (b.Resource.Text == nil) == (b.Resource.Blob == nil) {
			return missing("resource with uri and one of text and blob")
		}
	default:
		return fmt.Errorf("%w: type %q: unknown", errContent, b.Type)
	}
	return nil
}
