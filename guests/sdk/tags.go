package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// tags adds what the tags of a field say to its schema.
func tags(s *schema, tag reflect.StructTag) error {
	s.Description = tag.Get("description")
	for _, step := range []struct {
		name string
		set  func(*schema, string) error
	}{
		{"enum", setEnum},
		{"minimum", func(s *schema, v string) error { return setBound(&s.Minimum, s.numeric(), v) }},
		{"maximum", func(s *schema, v string) error { return setBound(&s.Maximum, s.numeric(), v) }},
		{"minLength", func(s *schema, v string) error { return setLength(&s.MinLength, s, v) }},
		{"maxLength", func(s *schema, v string) error { return setLength(&s.MaxLength, s, v) }},
		// Last, because a default must satisfy the others.
		{"default", setDefault},
	} {
		if !strings.Contains(string(tag), step.name) {
			continue // which is found faster than that no key has the name
		}
		v, ok := tag.Lookup(step.name)
		if !ok {
			continue
		}
		if err := step.set(s, v); err != nil {
			return fmt.Errorf("tag %s %q: %w", step.name, v, err)
		}
	}
	return nil
}

func (s *schema) numeric() bool { return s.Type == "integer" || s.Type == "number" }

func setEnum(s *schema, v string) error {
	var all []json.RawMessage
	for word := range strings.SplitSeq(v, ",") {
		lit, err := literal(s, word)
		if err != nil {
			return err
		}
		all = append(all, lit)
	}
	s.Enum = all
	return nil
}

func setDefault(s *schema, v string) error {
	lit, err := literal(s, v)
	if err != nil {
		return err
	}
	s.Default = lit
	return nil
}

func setBound(to **float64, applies bool, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !applies {
		return errors.New("want a number on a number field")
	}
	*to = &f
	return nil
}

func setLength(to **int, s *schema, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || s.Type != "string" {
		return errors.New("want a length on a string field")
	}
	*to = &n
	return nil
}

// literal reads the value of a tag: bare text for strings, JSON for the rest.
func literal(s *schema, v string) (json.RawMessage, error) {
	lit := json.RawMessage(v)
	if s.Type == "string" {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		lit = b
	}
	x, err := parse(lit)
	if err != nil {
		return nil, err
	}
	return lit, s.check("value", x)
}
