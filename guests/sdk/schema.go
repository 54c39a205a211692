package sdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// schema is the part of JSON Schema 2020-12 that Go types need. The zero
// schema accepts anything.
type schema struct {
	Type                 string            `json:"-"`
	Nullable             bool              `json:"-"`
	Description          string            `json:"description,omitempty"`
	Format               string            `json:"format,omitempty"`
	ContentEncoding      string            `json:"contentEncoding,omitempty"`
	Enum                 []json.RawMessage `json:"enum,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"`
	Minimum              *float64          `json:"minimum,omitempty"`
	Maximum              *float64          `json:"maximum,omitempty"`
	MinLength            *int              `json:"minLength,omitempty"`
	MaxLength            *int              `json:"maxLength,omitempty"`
	Items                *schema           `json:"items,omitempty"`
	Properties           properties        `json:"properties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	AdditionalProperties *schema           `json:"additionalProperties,omitempty"`
	Closed               bool              `json:"-"` // no further properties
	own                  bool              // its type reads or writes JSON in its own way
	whole                bool              // its type writes JSON by a method, whatever it is part of
}

// property is one named member of an object, in the order of the Go fields.
type property struct {
	name     string
	schema   *schema
	index    []int // of the field, and of the structs that it is embedded in
	required bool
	plain    bool // the name is one in JSON too, and is written as it is

	omitEmpty, omitZero bool
}

type properties []property

func (ps properties) get(name string) *schema {
	for _, p := range ps {
		if p.name == name {
			return p.schema
		}
	}
	return nil
}

// MarshalJSON writes the members in the order of the Go fields, which is the
// order in which their author thinks of them.
func (ps properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		s, err := json.Marshal(p.schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(s)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes the schema with its type first.
func (s *schema) MarshalJSON() ([]byte, error) {
	type plain schema
	head := struct {
		Type any `json:"type,omitempty"`
		*plain
		Closed *bool `json:"additionalProperties,omitempty"`
	}{plain: (*plain)(s)}
	switch {
	case s.Type != "" && s.Nullable:
		head.Type = []string{s.Type, "null"}
	case s.Type != "":
		head.Type = s.Type
	}
	if !s.Closed {
		// The outer field would hide the schema of further properties.
		return json.Marshal(struct {
			Type any `json:"type,omitempty"`
			*plain
		}{head.Type, head.plain})
	}
	head.Closed = new(bool)
	return json.Marshal(head)
}

// inputSchema returns the schema of a tool's arguments.
func inputSchema(t reflect.Type) (*schema, error) {
	if t.Kind() != reflect.Struct || t == timeType {
		return nil, fmt.Errorf("%v: want a struct", t)
	}
	return (&describer{}).of(t)
}

// outputSchema returns the schema of a tool's structured content; nil where it
// has none.
func outputSchema(t reflect.Type) (*schema, error) {
	if t == reflect.TypeFor[Result]() || t.Kind() == reflect.String {
		return nil, nil
	}
	s, err := (&describer{output: true}).of(t)
	if err != nil {
		return nil, err
	}
	if s.Type != "object" || t.Kind() == reflect.Pointer {
		return nil, fmt.Errorf("%v: want string, struct, map or sdk.Result", t)
	}
	s.Nullable = false
	return s, nil
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()

	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()

	// Types of their own ways, besides those.
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	numberType      = reflect.TypeFor[json.Number]()
)

// describer turns types into schemas. Arguments are closed and never null;
// output says where encoding/json writes null.
type describer struct {
	output bool
	path   []reflect.Type // the structs around the current type
	index  []int          // of the fields around the current one, as far as they are embedded
}

func (d *describer) of(t reflect.Type) (*schema, error) {
	s, err := d.kind(t)
	if err == nil && t.Kind() != reflect.Pointer {
		s.own, s.whole = d.own(t), d.whole(t)
	}
	return s, err
}

// own reports whether a type reads or writes JSON by methods that are its pointer's.
func (d *describer) own(t reflect.Type) bool {
	switch {
	case t == numberType:
		return true
	case !hasMethods(t):
		return false
	case d.output:
		p := reflect.PointerTo(t)
		return !d.whole(t) && (p.Implements(jsonMarshaler) || p.Implements(textMarshaler))
	}
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// whole reports whether a type writes JSON by methods of its own.
func (d *describer) whole(t reflect.Type) bool {
	return d.output && hasMethods(t) && (t.Implements(jsonMarshaler) || t.Implements(textMarshaler))
}

// hasMethods reports whether a type may have methods, other than those of what it
// points to. To ask for each of them takes longer.
func hasMethods(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return false
	case reflect.Struct, reflect.Interface: // those of what is embedded
		return true
	}
	return t.PkgPath() != ""
}

func (d *describer) kind(t reflect.Type) (*schema, error) {
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}, nil
	case t == rawType, hasMethods(t) && t.Implements(jsonMarshaler):
		return &schema{}, nil
	case hasMethods(t) && t.Implements(textMarshaler):
		return &schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer", Minimum: new(float64)}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Interface:
		return &schema{}, nil
	case reflect.Pointer:
		s, err := d.of(t.Elem())
		if err == nil {
			s.Nullable = d.output
		}
		return s, err
	case reflect.Slice, reflect.Array:
		return d.list(t)
	case reflect.Map:
		return d.dict(t)
	case reflect.Struct:
		return d.object(t)
	}
	return nil, fmt.Errorf("%v: not supported in JSON", t)
}

func (d *describer) list(t reflect.Type) (*schema, error) {
	null := d.output && t.Kind() == reflect.Slice
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return &schema{Type: "string", ContentEncoding: "base64", Nullable: null}, nil
	}
	items, err := d.of(t.Elem())
	if err != nil {
		return nil, err
	}
	return &schema{Type: "array", Items: items, Nullable: null}, nil
}

func (d *describer) dict(t reflect.Type) (*schema, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%v: want string keys", t)
	}
	elem, err := d.of(t.Elem())
	if err != nil {
		return nil, err
	}
	return &schema{Type: "object", AdditionalProperties: elem, Nullable: d.output}, nil
}

func (d *describer) object(t reflect.Type) (*schema, error) {
	if slices.Contains(d.path, t) {
		return nil, fmt.Errorf("%v: contains itself", t)
	}
	d.path = append(d.path, t)
	defer func() { d.path = d.path[:len(d.path)-1] }()
	s := &schema{Type: "object", Closed: true}
	return s, d.fields(t, s)
}

// fields adds the fields of a struct to its schema.
func (d *describer) fields(t reflect.Type, s *schema) error {
	around := d.index
	defer func() { d.index = around }()
	for i := range t.NumField() { // an iterator would need a larger stack
		f := t.Field(i)
		d.index = slices.Concat(around, f.Index)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && rest == "" {
			continue
		}
		if f.Anonymous && name == "" {
			if f.Type.Kind() != reflect.Struct {
				return fmt.Errorf("%v.%s: only structs can be embedded", t, f.Name)
			}
			if err := d.fields(f.Type, s); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if err := d.field(f, name, rest, s); err != nil {
			return fmt.Errorf("%v.%s: %w", t, f.Name, err)
		}
	}
	return nil
}

func (d *describer) field(f reflect.StructField, name, options string, s *schema) error {
	if s.Properties.get(name) != nil {
		return fmt.Errorf("argument %s: named twice", name)
	}
	words := strings.Split(options, ",")
	if slices.Contains(words, "string") {
		return errors.New("json option string: not supported")
	}
	index := d.index
	d.index = nil
	p, err := d.of(f.Type)
	if err != nil {
		return err
	}
	if err := tags(p, f.Tag); err != nil {
		return err
	}
	empty, zero := slices.Contains(words, "omitempty"), slices.Contains(words, "omitzero")
	omit := empty || zero
	optional := omit || p.Default != nil
	if d.output {
		p.Nullable = p.Nullable && !omit
	} else {
		optional = optional || f.Type.Kind() == reflect.Pointer
	}
	s.Properties = append(s.Properties, property{
		name: name, schema: p, index: index, required: !optional, plain: validName(name), omitEmpty: empty, omitZero: zero,
	})
	if !optional {
		s.Required = append(s.Required, name)
	}
	return nil
}
