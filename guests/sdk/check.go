package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// arguments checks the arguments of a call against the schema and returns them
// with defaults filled in.
func arguments(s *schema, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if err := s.check("arguments", v); err != nil {
		return nil, err
	}
	return json.Marshal(s.fill(v))
}

// parse reads one JSON value and keeps numbers as they are written.
func parse(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON value")
	}
	return v, nil
}

// fill returns a value that was checked with the defaults of absent properties
// put in, and integers written as encoding/json reads them.
func (s *schema) fill(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && s.Type == "integer" && !plain(v) {
			return int64(f)
		}
	case []any:
		for i, e := range v {
			if s.Items != nil {
				v[i] = s.Items.fill(e)
			}
		}
	case map[string]any:
		for _, p := range s.Properties {
			if e, ok := v[p.name]; ok {
				v[p.name] = p.schema.fill(e)
			} else if p.schema.Default != nil {
				v[p.name] = p.schema.Default
			}
		}
		if s.AdditionalProperties != nil {
			for k, e := range v {
				v[k] = s.AdditionalProperties.fill(e)
			}
		}
	}
	return v
}

// check reports where v does not satisfy the schema; at names v.
func (s *schema) check(at string, v any) error {
	if err := s.checkType(at, v); err != nil {
		return err
	}
	switch v := v.(type) {
	case json.Number:
		if err := s.checkNumber(at, v); err != nil {
			return err
		}
	case string:
		if err := s.checkString(at, v); err != nil {
			return err
		}
	case []any:
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), e); err != nil {
				return err
			}
		}
	case map[string]any:
		return s.checkObject(at, v)
	}
	return nil
}

func (s *schema) checkType(at string, v any) error {
	if s.Type == "" {
		return nil
	}
	got := "null"
	switch v := v.(type) {
	case bool:
		got = "boolean"
	case string:
		got = "string"
	case []any:
		got = "array"
	case map[string]any:
		got = "object"
	case json.Number:
		got = "number"
		if s.Type == "integer" && integral(v) {
			got = "integer"
		}
	}
	if got != s.Type {
		return fmt.Errorf("%s: want %s, got %s", at, s.Type, got)
	}
	return nil
}

// plain reports whether n is written without a point and an exponent.
func plain(n json.Number) bool { return !strings.ContainsAny(n.String(), ".eE") }

// integral reports whether n is an integer, however it is written: to JSON
// Schema 1, 1.0 and 1e0 are the same.
func integral(n json.Number) bool {
	if plain(n) {
		return true
	}
	f, err := n.Float64()
	return err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

func (s *schema) checkNumber(at string, n json.Number) error {
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("%s: number out of range", at)
	}
	if s.Minimum != nil && f < *s.Minimum {
		return fmt.Errorf("%s: want at least %v", at, *s.Minimum)
	}
	if s.Maximum != nil && f > *s.Maximum {
		return fmt.Errorf("%s: want at most %v", at, *s.Maximum)
	}
	return s.checkEnum(at, strconv.FormatFloat(f, 'f', -1, 64))
}

func (s *schema) checkString(at, v string) error {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength {
		return fmt.Errorf("%s: want at least %d characters", at, *s.MinLength)
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		return fmt.Errorf("%s: want at most %d characters", at, *s.MaxLength)
	}
	if s.Enum == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.checkEnum(at, string(b))
}

func (s *schema) checkEnum(at, lit string) error {
	if s.Enum == nil {
		return nil
	}
	names := make([]string, len(s.Enum))
	for i, e := range s.Enum {
		names[i] = string(e)
	}
	if !slices.Contains(names, lit) {
		return fmt.Errorf("%s: want one of %s", at, strings.Join(names, ", "))
	}
	return nil
}

func (s *schema) checkObject(at string, v map[string]any) error {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: %s is missing", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p := s.Properties.get(name)
		if p == nil {
			p = s.AdditionalProperties
		}
		if p == nil && s.Closed {
			return fmt.Errorf("%s: %s is unknown", at, name)
		}
		if p == nil {
			continue
		}
		if err := p.check(at+"."+name, v[name]); err != nil {
			return err
		}
	}
	return nil
}
