package tool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
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
	case int64, decimalValue:
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
	case int64:
		return "integer"
	case decimalValue:
		if v.integer() {
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
	return j.identityOfNumber(b, v)
}

func (j *judge) identityOf(b []byte, s string) []byte {
	if !j.spend(1 + len(s)/8) {
		return b
	}
	b = binary.AppendUvarint(append(b, 's'), uint64(len(s)))
	return append(b, s...)
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

// number checks the bounds of a number.
func (j *judge) number(r *rule, v any) bool {
	if !j.spendOnNumber(v) {
		return false
	}
	switch {
	case r.minimum != nil && compare(v, r.minimum) < 0:
		return j.no(func() (string, string) {
			return fmt.Sprintf("is %s, less than %s", numberText(v), numberText(r.minimum)), "send at least " + numberText(r.minimum)
		})
	case r.maximum != nil && compare(v, r.maximum) > 0:
		return j.no(func() (string, string) {
			return fmt.Sprintf("is %s, more than %s", numberText(v), numberText(r.maximum)), "send at most " + numberText(r.maximum)
		})
	case r.above != nil && compare(v, r.above) <= 0:
		return j.no(func() (string, string) { return "is too small", "send more than " + numberText(r.above) })
	case r.below != nil && compare(v, r.below) >= 0:
		return j.no(func() (string, string) { return "is too large", "send less than " + numberText(r.below) })
	case r.multiple != nil:
		return j.multiple(*r.multiple, v)
	}
	return true
}

// spendOnNumber takes the steps to compare a number.
func (j *judge) spendOnNumber(v any) bool {
	d, ok := v.(decimalValue)
	return !ok || j.spend(len(d.digits)/8)
}

func (j *judge) multiple(m divisor, v any) bool {
	d := decimalOf(v)
	if m.of != 1 && !j.spend(len(d.digits)+max(d.exp-m.exp, 0)) {
		return false
	}
	return m.divides(v) || j.no(func() (string, string) {
		return "is no multiple of " + numberText(m.number), "send one"
	})
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
