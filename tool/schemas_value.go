package tool

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// itself checks what a rule says about a value as a whole: type, enum and const,
// and the bounds of numbers and texts.
func (j *judge) itself(r *rule, v any) bool {
	if len(r.types) > 0 && !slices.ContainsFunc(r.types, func(t string) bool { return isType(v, t) }) {
		return j.no(func() (string, string) {
			return "is " + article(typeOf(v)), "send " + article(strings.Join(r.types, " or "))
		})
	}
	if r.choices != nil && !j.chosen(r, v) {
		return false
	}
	switch v := v.(type) {
	case textValue:
		return j.text(r, string(v))
	case int64, uint64, float64:
		return j.number(r, v)
	}
	return true
}

// typeOf returns the type of a value in the words of JSON Schema.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, uint64:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case textValue:
		return "string"
	case listValue:
		return "array"
	}
	return "object"
}

func isType(v any, want string) bool {
	t := typeOf(v)
	return t == want || t == "integer" && want == "number"
}

func article(t string) string {
	switch {
	case strings.HasPrefix(t, "null"):
		return t
	case strings.IndexByte("aio", t[0]) >= 0:
		return "an " + t
	}
	return "a " + t
}

// chosen checks enum and const.
func (j *judge) chosen(r *rule, v any) bool {
	j.buffer = j.identity(j.buffer[:0], v)
	if j.over {
		return false
	}
	for _, c := range r.choices {
		if !c.of[string(j.buffer)] {
			return j.no(func() (string, string) { return "is not a value that is allowed", c.mend })
		}
	}
	return true
}

// choice is the values of enum, or the one of const.
type choice struct {
	of   map[string]bool // by identity
	mend string
}

// newChoice returns a choice of values of a schema.
func newChoice(values listValue) (choice, error) {
	c := choice{of: make(map[string]bool, len(values))}
	j := &judge{most: maxSteps}
	for _, v := range values {
		c.of[string(j.identity(nil, v))] = true
	}
	if j.over {
		return c, errors.New("enum or const is too large")
	}
	var mend strings.Builder
	mend.WriteString("send ")
	for i, v := range values {
		if mend.Len() > 200 {
			mend.WriteString(", …")
			break
		}
		if i > 0 {
			mend.WriteString(" or ")
		}
		text, err := json.Marshal(v)
		if err != nil {
			return c, err
		}
		mend.WriteString(brief(string(text)))
	}
	c.mend = mend.String()
	return c, nil
}

// identity appends what is the same for equal values, and for no others: numbers
// are equal by value, objects whatever the order of their keys.
func (j *judge) identity(b []byte, v any) []byte {
	if !j.spend(1) {
		return b
	}
	switch v := v.(type) {
	case nil:
		return append(b, '0')
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case textValue:
		return j.identityOf(b, string(v))
	case listValue:
		b = binary.AppendUvarint(append(b, '['), uint64(len(v)))
		for _, e := range v {
			b = j.identity(b, e)
		}
		return b
	case *objectValue:
		n := len(v.keys)
		b = binary.AppendUvarint(append(b, '{'), uint64(n))
		if !j.spend(perKey * n * bits.Len(uint(n))) {
			return b
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(x, y int) int { return strings.Compare(v.keys[x], v.keys[y]) })
		for _, i := range order {
			b = j.identityOf(b, v.keys[i])
			b = j.identity(b, v.values[i])
		}
		return b
	}
	return identityOfNumber(b, v)
}

func (j *judge) identityOf(b []byte, s string) []byte {
	if !j.spend(1 + len(s)/8) {
		return b
	}
	b = binary.AppendUvarint(append(b, 's'), uint64(len(s)))
	return append(b, s...)
}

// identityOfNumber writes what is an integer of 64 bits as one, however it was
// read, and the rest as a float.
func identityOfNumber(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return binary.BigEndian.AppendUint64(append(b, '-'), uint64(-v))
		}
		return binary.BigEndian.AppendUint64(append(b, '+'), uint64(v))
	case uint64:
		return binary.BigEndian.AppendUint64(append(b, '+'), v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return identityOfNumber(b, int64(v))
		}
		if v == math.Trunc(v) && v >= 0 && v < 1<<64 {
			return identityOfNumber(b, uint64(v))
		}
		if v == -1<<63 {
			return identityOfNumber(b, int64(math.MinInt64))
		}
		return binary.BigEndian.AppendUint64(append(b, '.'), math.Float64bits(v))
	}
	panic(fmt.Sprintf("no value of JSON: %T", v))
}

// between checks a count against bounds, either of which may be nil. nil: it
// keeps to them.
func between(n int, unit string, least, most *int) func() (string, string) {
	switch {
	case least != nil && n < *least:
		return func() (string, string) {
			return fmt.Sprintf("is %d %s, less than %d %s", n, unit, *least, unit), fmt.Sprintf("send at least %d %s", *least, unit)
		}
	case most != nil && n > *most:
		return func() (string, string) {
			return fmt.Sprintf("is %d %s, more than %d %s", n, unit, *most, unit), fmt.Sprintf("send at most %d %s", *most, unit)
		}
	}
	return nil
}

func (j *judge) text(r *rule, s string) bool {
	if r.MinLength != nil || r.MaxLength != nil {
		if !j.spend(len(s) / 8) {
			return false
		}
		if f := between(utf8.RuneCountInString(s), "characters", r.MinLength, r.MaxLength); f != nil {
			return j.no(f)
		}
	}
	if r.pattern == nil {
		return true
	}
	if !j.spend(r.pattern.cost(len(s))) {
		return false
	}
	return r.pattern.MatchString(s) || j.no(func() (string, string) {
		return "does not match the pattern", "send text that matches " + brief(r.Pattern)
	})
}

func (j *judge) number(r *rule, v any) bool {
	switch {
	case r.Minimum != nil && compare(v, *r.Minimum) < 0:
		return j.no(func() (string, string) {
			return fmt.Sprintf("is %v, less than %s", v, decimal(*r.Minimum)), "send at least " + decimal(*r.Minimum)
		})
	case r.Maximum != nil && compare(v, *r.Maximum) > 0:
		return j.no(func() (string, string) {
			return fmt.Sprintf("is %v, more than %s", v, decimal(*r.Maximum)), "send at most " + decimal(*r.Maximum)
		})
	case r.ExclusiveMinimum != nil && compare(v, *r.ExclusiveMinimum) <= 0:
		return j.no(func() (string, string) { return "is too small", "send more than " + decimal(*r.ExclusiveMinimum) })
	case r.ExclusiveMaximum != nil && compare(v, *r.ExclusiveMaximum) >= 0:
		return j.no(func() (string, string) { return "is too large", "send less than " + decimal(*r.ExclusiveMaximum) })
	case r.MultipleOf != nil && !multiple(v, *r.MultipleOf):
		return j.no(func() (string, string) {
			return "is no multiple of " + decimal(*r.MultipleOf), "send one"
		})
	}
	return true
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// compare compares a number with a float, exactly.
func compare(v any, f float64) int {
	switch v := v.(type) {
	case int64:
		if f >= 1<<63 {
			return -1
		}
		if f < -1<<63 {
			return 1
		}
		return cmp.Or(cmp.Compare(v, int64(f)), cmp.Compare(0, f-math.Trunc(f)))
	case uint64:
		if f >= 1<<64 {
			return -1
		}
		if f < 0 {
			return 1
		}
		return cmp.Or(cmp.Compare(v, uint64(f)), cmp.Compare(0, f-math.Trunc(f)))
	case float64:
		return cmp.Compare(v, f)
	}
	panic(fmt.Sprintf("no number: %T", v))
}

// multiple reports whether a number divided by m is an integer, in floats.
func multiple(v any, m float64) bool {
	var f float64
	switch v := v.(type) {
	case int64:
		f = float64(v)
	case uint64:
		f = float64(v)
	case float64:
		f = v
	}
	_, rest := math.Modf(f / m)
	return rest == 0
}

// known says which members an object may have.
func (r *rule) known() string {
	if len(r.properties) == 0 {
		return "leave it out"
	}
	var mend strings.Builder
	mend.WriteString("leave it out; known are ")
	for i, name := range slices.Sorted(maps.Keys(r.properties)) {
		if mend.Len() > 200 {
			mend.WriteString(", …")
			break
		}
		if i > 0 {
			mend.WriteString(", ")
		}
		mend.WriteString(brief(name))
	}
	return mend.String()
}
