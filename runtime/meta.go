package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// What one _meta of a guest may hold.
const (
	maxMetaKeys  = 64
	maxMetaBytes = 64 << 10
)

// guestMeta is a _meta object that a guest wrote, without the keys that are not
// a guest's to set.
type guestMeta struct {
	keys    map[string]json.RawMessage
	dropped int
}

// IsZero reports whether there are no keys.
func (m guestMeta) IsZero() bool { return len(m.keys) == 0 }

// MarshalJSON writes the keys.
func (m guestMeta) MarshalJSON() ([]byte, error) { return json.Marshal(m.keys) }

// UnmarshalJSON reads the keys. Values are written again, so that whoever parses
// them next reads the same.
func (m *guestMeta) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if len(raw) > maxMetaBytes {
		return fmt.Errorf("%d bytes, at most %d", len(raw), maxMetaBytes)
	}
	s := &scanner{ctx: context.Background(), in: raw}
	n := 0
	if err := s.members(0, func([]byte) error { n++; return s.value(1) }); err != nil {
		return errors.New("not an object")
	}
	if n > maxMetaKeys {
		return fmt.Errorf("%d keys, at most %d", n, maxMetaKeys)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return err
	}
	m.keys = map[string]json.RawMessage{}
	for key, v := range values {
		if !guestKey(key) {
			m.dropped++
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		m.keys[key] = b
	}
	return nil
}

// metaKey is the form of a _meta key (MCP 2026-07-28, basic/index.mdx, _meta):
// an optional prefix of labels, and a name. It is ASCII, so that keys which one
// reader takes for the same are the same for all but their case.
var metaKey = regexp.MustCompile(`^(?:(` + metaLabel + `(?:\.` + metaLabel + `)*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

const metaLabel = `[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?`

// guestKey reports whether a _meta key is one that a guest may set: neither the
// project's, nor one that the protocol reserves to itself, nor one that is none.
func guestKey(key string) bool {
	parts := metaKey.FindStringSubmatch(key)
	if parts == nil || key == "" {
		return false
	}
	prefix := strings.ToLower(parts[1])
	if prefix+"/" == MetaPrefix {
		return false
	}
	labels := strings.Split(prefix, ".")
	return len(labels) < 2 || labels[1] != "mcp" && labels[1] != "modelcontextprotocol"
}
