package sdk

import (
	"encoding/json"
	"runtime"
	"strings"
)

// rounds is how often what calls do is done ahead: the caches and pools of
// encoding/json, and the free lists of the allocator, are as after many calls then.
const rounds = 4

// room is what is free of the heap when the image is made, in bytes: about what a
// small call takes, which would have to make the heap larger each time.
const room = 512 << 10

// warm does ahead what the first call would do for all that follow: encoding/json
// looks at a type when it first meets it, and the allocator gets memory for each size
// of objects. No handler runs. Methods of the types of arguments do, on values that
// the schema allows, and those of answers on zero values; what they panic with is
// dropped.
func warm() {
	runtime.KeepAlive(make([]byte, room))
	runtime.GC() // before the rest, which it would undo
	for range rounds {
		Run([]byte(`{"tool":"","arguments":{}}`))
		for i := range tools {
			tools[i].rehearse()
		}
	}
	stock()
}

// rehearse does for a tool what a call does, but for the handler.
func (d *Definition) rehearse() {
	defer func() { _ = recover() }()
	args := string(d.input.sample(nil))
	req := []byte(`{"tool":"` + d.about.Name + `","arguments":` + args + `,"context":{"callId":"warm"}}`)
	quick(req)
	_, _ = d.decode(json.RawMessage(args)) // may not be what it wants
	_, _ = d.zero().json()
}

// sample appends a value that the schema allows, of many.
func (s *schema) sample(b []byte) []byte {
	switch {
	case s.Default != nil:
		return append(b, s.Default...)
	case s.Enum != nil:
		return append(b, s.Enum[0]...)
	}
	switch s.Type {
	case "string":
		if s.Format != "" {
			return append(b, `"2000-01-01T00:00:00Z"`...)
		}
		n := 16
		if s.MinLength != nil {
			n = max(n, *s.MinLength)
		}
		if s.MaxLength != nil {
			n = min(n, *s.MaxLength)
		}
		return append(append(append(b, '"'), strings.Repeat("x", n)...), '"')
	case "integer", "number":
		n, _ := json.Marshal(s.number())
		return append(b, n...)
	case "boolean":
		return append(b, "true"...)
	case "array":
		return append(s.Items.sample(append(b, '[')), ']')
	case "object":
		b = append(b, '{')
		for i, p := range s.Properties {
			if i > 0 {
				b = append(b, ',')
			}
			name, _ := json.Marshal(p.name)
			b = p.schema.sample(append(append(b, name...), ':'))
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// number returns a number that the schema allows.
func (s *schema) number() float64 {
	n := 1.0
	if s.Maximum != nil {
		n = min(n, *s.Maximum)
	}
	if s.Minimum != nil {
		n = max(n, *s.Minimum)
	}
	return n
}

// stock has the allocator get memory for objects of each size up to a few kilobytes,
// with pointers and without, as the first call would have it do.
func stock() {
	for n := 8; n <= 4096; n += max(8, n/8) {
		runtime.KeepAlive(make([]byte, n))
		runtime.KeepAlive(make([]*byte, n/8))
	}
}
