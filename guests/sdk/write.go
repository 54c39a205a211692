package sdk

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// write appends v as encoding/json writes it. It returns false where that is not
// plain from the schema of its type.
func (s *schema) write(b []byte, v reflect.Value) ([]byte, bool) {
	if s.own {
		return nil, false
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(b, "null"...), true
		}
		v = v.Elem()
	}
	switch {
	case s.whole, v.Kind() == reflect.Map, v.Kind() == reflect.Interface, v.CanFloat():
		// What is in these can have no method that it has not by itself.
		leaf, err := json.Marshal(v.Interface())
		return append(b, leaf...), err == nil
	case v.Kind() == reflect.String:
		return appendQuoted(b, v.String()), true
	case v.Kind() == reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), true
	case v.CanInt():
		return strconv.AppendInt(b, v.Int(), 10), true
	case v.CanUint():
		return strconv.AppendUint(b, v.Uint(), 10), true
	case v.Kind() == reflect.Slice && s.Items != nil:
		return s.writeList(b, v)
	case v.Kind() == reflect.Struct:
		return s.writeObject(b, v)
	}
	return nil, false
}

func (s *schema) writeList(b []byte, v reflect.Value) ([]byte, bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = s.Items.write(b, v.Index(i)); !ok {
			return nil, false
		}
	}
	return append(b, ']'), true
}

func (s *schema) writeObject(b []byte, v reflect.Value) ([]byte, bool) {
	b = append(b, '{')
	first := true
	for i := range s.Properties {
		p := &s.Properties[i]
		of := v.FieldByIndex(p.index)
		if !p.plain || p.omitZero {
			return nil, false
		}
		if p.omitEmpty && empty(of) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), p.name...), `":`...)
		var ok bool
		if b, ok = p.schema.write(b, of); !ok {
			return nil, false
		}
	}
	return append(b, '}'), true
}

// empty is what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
