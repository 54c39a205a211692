package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// explain says why a value that the validator refused does not fit: where, what
// is wrong and what to send instead. nil: the reason lies in keywords that it
// does not follow. What it says is for people and models; it judges nothing. It
// goes where a [weigher] went before, so that what it costs is bounded.
func (r *rule) explain(at *spot, v any) *fault {
	if r.never {
		return &fault{at.pointer(), "is not allowed here", "leave it out"}
	}
	if f := r.itself(at, v); f != nil {
		return f
	}
	for _, next := range r.all {
		if f := next.explain(at, v); f != nil {
			return f
		}
	}
	switch v := v.(type) {
	case objectValue:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, next := range r.members(key)[len(r.anyMember):] {
				if f := next.explain(&spot{up: at, key: key}, v[key]); f != nil {
					return f
				}
			}
		}
	case listValue:
		for i, e := range v {
			for _, next := range r.items(i)[len(r.anyItem):] {
				if f := next.explain(&spot{up: at, index: i, list: true}, e); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

// itself checks what a schema says about the value itself.
func (r *rule) itself(at *spot, v any) *fault {
	want := r.Types
	if r.Type != "" {
		want = []string{r.Type}
	}
	if len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return isType(v, t) }) {
		return &fault{at.pointer(), "is " + article(typeOf(v)), "send " + article(strings.Join(want, " or "))}
	}
	if f := r.choice(at, v); f != nil {
		return f
	}
	switch v := v.(type) {
	case textValue:
		return r.characters(at, string(v))
	case listValue:
		return between(at, float64(len(v)), "items", limit(r.MinItems), limit(r.MaxItems))
	case objectValue:
		return r.keys(at, v)
	case int64:
		return r.bounds(at, float64(v))
	case uint64:
		return r.bounds(at, float64(v))
	case float64:
		return r.bounds(at, v)
	}
	return nil
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

func (r *rule) choice(at *spot, v any) *fault {
	list := r.Enum
	if r.Const != nil {
		list = []any{*r.Const}
	}
	if list == nil || slices.ContainsFunc(list, func(e any) bool { return jsonschema.Equal(e, v) }) {
		return nil
	}
	var mend strings.Builder
	mend.WriteString("send ")
	for i, e := range list {
		if mend.Len() > 200 {
			mend.WriteString(", …")
			break
		}
		if i > 0 {
			mend.WriteString(" or ")
		}
		b, err := json.Marshal(e)
		if err != nil {
			return nil // enum and const were JSON
		}
		mend.WriteString(brief(string(b)))
	}
	return &fault{at.pointer(), "is not a value that is allowed", mend.String()}
}

// limit returns a bound of a count.
func limit(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// between checks a number against bounds, either of which may be nil.
func between(at *spot, n float64, unit string, least, most *float64) *fault {
	number := func(f float64) string {
		return strings.TrimSpace(strconv.FormatFloat(f, 'g', -1, 64) + " " + unit)
	}
	switch {
	case least != nil && n < *least:
		return &fault{at.pointer(), "is " + number(n) + ", less than " + number(*least), "send at least " + number(*least)}
	case most != nil && n > *most:
		return &fault{at.pointer(), "is " + number(n) + ", more than " + number(*most), "send at most " + number(*most)}
	}
	return nil
}

func (r *rule) bounds(at *spot, n float64) *fault {
	if f := between(at, n, "", r.Minimum, r.Maximum); f != nil {
		return f
	}
	switch {
	case r.ExclusiveMinimum != nil && n <= *r.ExclusiveMinimum:
		return &fault{at.pointer(), "is too small", fmt.Sprintf("send more than %g", *r.ExclusiveMinimum)}
	case r.ExclusiveMaximum != nil && n >= *r.ExclusiveMaximum:
		return &fault{at.pointer(), "is too large", fmt.Sprintf("send less than %g", *r.ExclusiveMaximum)}
	}
	return nil
}

func (r *rule) characters(at *spot, s string) *fault {
	if f := between(at, float64(utf8.RuneCountInString(s)), "characters", limit(r.MinLength), limit(r.MaxLength)); f != nil {
		return f
	}
	if r.pattern != nil && !r.pattern.MatchString(s) {
		return &fault{at.pointer(), "does not match the pattern", "send text that matches " + brief(r.Pattern)}
	}
	return nil
}

// keys checks which members an object has.
func (r *rule) keys(at *spot, o objectValue) *fault {
	for _, name := range r.Required {
		if _, ok := o[name]; !ok {
			return &fault{(&spot{up: at, key: name}).pointer(), "is missing", "send it"}
		}
	}
	if r.additional == nil || !r.additional.never {
		return between(at, float64(len(o)), "members", limit(r.MinProperties), limit(r.MaxProperties))
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if next := r.members(key); len(next) > 0 && next[len(next)-1] == r.additional {
			return &fault{(&spot{up: at, key: key}).pointer(), "is unknown", r.known()}
		}
	}
	return nil
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
