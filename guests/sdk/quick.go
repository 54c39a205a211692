package sdk

import (
	"bytes"
	"reflect"
)

// What nearly all calls are made of is understood here, in one pass over the text:
// requests as the host writes them, with arguments that fit. encoding/json goes over
// a text several times, with a call of a function for each byte. Whatever is not
// plainly right is left to it, and to the words that it has for what is wrong.

// unsure is what is returned for a place in a text that is not plainly right.
const unsure = -1

// quick returns a request's tool with a pointer to the arguments and the id of the
// call; nil where it is not sure.
func quick(req []byte) (d *Definition, in any, id string) {
	const tool, args, call, end = `{"tool":"`, `","arguments":`, `,"context":{"callId":"`, `"}}`
	name, rest, ok := cutName(req, tool)
	if d = find(string(name)); !ok || d == nil || !bytes.HasPrefix(rest, []byte(args)) {
		return nil, nil, ""
	}
	rest = rest[len(args):]
	in = d.blank()
	n := d.input.read(rest, 0, reflect.ValueOf(in).Elem())
	if n == unsure {
		return nil, nil, ""
	}
	caller, tail, ok := cutName(rest[n:], call)
	if !ok || string(tail) != end {
		return nil, nil, ""
	}
	return d, in, string(caller)
}

// cutName returns what follows the prefix up to a quote, where that is a name of
// letters, digits and a few signs.
func cutName(b []byte, prefix string) (name, rest []byte, ok bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return nil, nil, false
	}
	b = b[len(prefix):]
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return b[:i], b[i:], c == '"'
		}
	}
	return nil, nil, false
}

// read reads the value that begins at b[i] into a zero v and returns the index behind
// it. Where it is not sure v is to be forgotten.
func (s *schema) read(b []byte, i int, v reflect.Value) int {
	if i >= len(b) || s.own {
		return unsure
	}
	for v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch s.Type {
	case "string":
		return s.readString(b, i, v)
	case "integer", "number":
		return s.readNumber(b, i, v)
	case "boolean":
		return readBool(b, i, v)
	case "array":
		return s.readList(b, i, v)
	case "object":
		return s.readObject(b, i, v)
	}
	return unsure
}

func readBool(b []byte, i int, v reflect.Value) int {
	switch {
	case v.Kind() != reflect.Bool:
	case bytes.HasPrefix(b[i:], []byte("true")):
		v.SetBool(true)
		return i + len("true")
	case bytes.HasPrefix(b[i:], []byte("false")):
		return i + len("false")
	}
	return unsure
}

func (s *schema) readList(b []byte, i int, v reflect.Value) int {
	if b[i] != '[' || v.Kind() != reflect.Slice {
		return unsure
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	if i++; i < len(b) && b[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		if i = s.Items.read(b, i, v.Index(n)); i == unsure || i >= len(b) {
			return unsure
		}
		switch b[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return unsure
		}
	}
}

// most is the number of properties that can be kept in mind.
const most = 64

// readObject reads structs: each member once, by its own name.
func (s *schema) readObject(b []byte, i int, v reflect.Value) int {
	if b[i] != '{' || v.Kind() != reflect.Struct || len(s.Properties) > most {
		return unsure
	}
	var seen uint64
	if i++; i < len(b) && b[i] == '}' {
		return s.complete(seen, v, i+1)
	}
	for {
		n := s.Properties.named(b[i:])
		if n < 0 || seen&(1<<n) != 0 {
			return unsure
		}
		seen |= 1 << n
		p := &s.Properties[n]
		if i = p.schema.read(b, i+len(p.name)+len(`"":`), v.FieldByIndex(p.index)); i == unsure || i >= len(b) {
			return unsure
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return s.complete(seen, v, i+1)
		default:
			return unsure
		}
	}
}

// named returns the index of the property whose name, quotes and colon b begins with.
func (ps properties) named(b []byte) int {
	for i := range ps {
		p := &ps[i]
		n := len(p.name)
		if len(b) > n+2 && p.plain && b[n+1] == '"' && b[n+2] == ':' && b[0] == '"' && string(b[1:n+1]) == p.name {
			return i
		}
	}
	return -1
}

// complete fills in the defaults of what was not seen and returns end.
func (s *schema) complete(seen uint64, v reflect.Value, end int) int {
	for i := range s.Properties {
		p := &s.Properties[i]
		if seen&(1<<i) != 0 {
			continue
		}
		if p.required {
			return unsure
		}
		d := p.schema.Default
		if d != nil && p.schema.read(d, 0, v.FieldByIndex(p.index)) != len(d) {
			return unsure
		}
	}
	return end
}

func (s *schema) readString(b []byte, i int, v reflect.Value) int {
	if v.Kind() != reflect.String {
		return unsure
	}
	text, end := readText(b, i)
	if end == unsure {
		return unsure
	}
	if (s.MinLength != nil || s.MaxLength != nil || s.Enum != nil) && s.checkString("", text) != nil {
		return unsure
	}
	v.SetString(text)
	return end
}

// exact is how many digits an integer may have to be the same as a float64.
const exact = 15

// readNumber reads integers, written as such.
func (s *schema) readNumber(b []byte, i int, v reflect.Value) int {
	negative := b[i] == '-'
	if negative {
		i++
	}
	from := i
	n := int64(0)
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i-from == exact {
			return unsure
		}
		n = n*10 + int64(b[i]-'0')
	}
	digits := i - from
	if digits == 0 || b[from] == '0' && (digits > 1 || negative) || s.Enum != nil {
		return unsure
	}
	if negative {
		n = -n
	}
	if s.Minimum != nil && float64(n) < *s.Minimum || s.Maximum != nil && float64(n) > *s.Maximum || !setNumber(v, n) {
		return unsure
	}
	return i // before a fraction or an exponent, which is nothing that may follow
}

// setNumber reports whether v can hold n.
func setNumber(v reflect.Value, n int64) bool {
	switch {
	case v.CanInt() && !v.OverflowInt(n):
		v.SetInt(n)
	case v.CanUint() && n >= 0 && !v.OverflowUint(uint64(n)):
		v.SetUint(uint64(n))
	case v.CanFloat():
		v.SetFloat(float64(n))
	default:
		return false
	}
	return true
}
