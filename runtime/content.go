package runtime

import (
	"bytes"
	"context"
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
	Meta        guestMeta          `json:"_meta,omitzero"`
}

// UnmarshalJSON reads the known fields.
func (b *contentBlock) UnmarshalJSON(raw []byte) error {
	return readFields(raw, map[string]any{
		"type": &b.Type, "text": &b.Text, "data": &b.Data, "mimeType": &b.MIMEType, "uri": &b.URI, "name": &b.Name,
		"title": &b.Title, "description": &b.Description, "size": &b.Size, "resource": &b.Resource,
		"annotations": &b.Annotations, "_meta": &b.Meta,
	})
}

// resourceContents is TextResourceContents or BlobResourceContents of MCP.
type resourceContents struct {
	URI      string    `json:"uri"`
	MIMEType string    `json:"mimeType,omitempty"`
	Text     *string   `json:"text,omitempty"`
	Blob     *[]byte   `json:"blob,omitempty"` // base64
	Meta     guestMeta `json:"_meta,omitzero"`
}

// UnmarshalJSON reads the known fields.
func (r *resourceContents) UnmarshalJSON(raw []byte) error {
	return readFields(raw, map[string]any{"uri": &r.URI, "mimeType": &r.MIMEType, "text": &r.Text, "blob": &r.Blob, "_meta": &r.Meta})
}

// contentAnnotation is Annotations of MCP: for whom a content is.
type contentAnnotation struct {
	Audience     []string `json:"audience,omitempty"`
	Priority     float64  `json:"priority,omitempty"`
	LastModified string   `json:"lastModified,omitempty"`
}

// UnmarshalJSON reads the known fields.
func (a *contentAnnotation) UnmarshalJSON(raw []byte) error {
	return readFields(raw, map[string]any{"audience": &a.Audience, "priority": &a.Priority, "lastModified": &a.LastModified})
}

// readFields reads an object's members under the names of fields. Names count
// as they are: encoding/json takes those that differ by case for the same.
func readFields(raw []byte, fields map[string]any) error {
	s := &scanner{ctx: context.Background(), in: raw}
	if s.peek() != '{' {
		return errors.New("not an object")
	}
	seen := map[string]bool{}
	return s.members(0, func(key []byte) error {
		s.peek()
		start := s.at
		if err := s.value(1); err != nil {
			return err
		}
		name := string(nameOf(key))
		into, known := fields[name]
		if !known {
			return nil
		}
		if seen[name] {
			return fmt.Errorf("%s: %w", name, errTwice)
		}
		seen[name] = true
		if err := json.Unmarshal(s.in[start:s.at], into); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// errContent is matched by what is wrong with a content block.
var errContent = errors.New("content block")

// cleanContent checks one content block of a guest, writes it again from its
// known fields, and returns how many _meta keys it dropped.
func cleanContent(raw []byte) (clean json.RawMessage, dropped int, err error) {
	if cleanText(raw) {
		return raw, 0, nil
	}
	var b contentBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errContent, err)
	}
	if err := b.check(); err != nil {
		return nil, 0, err
	}
	dropped = b.Meta.dropped
	if b.Resource != nil {
		dropped += b.Resource.Meta.dropped
	}
	var out bytes.Buffer
	out.Grow(len(raw) + 64)
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errContent, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), dropped, nil
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
