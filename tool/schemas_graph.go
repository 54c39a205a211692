package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// rule is one schema with those that it leads to. The graph of rules follows
// the validator's steps without judging: how many there will be, which names an
// object knows, and why a value that does not fit does not.
type rule struct {
	*jsonschema.Schema
	never      bool    // the schema false
	text       int     // bytes of what an error of the validator repeats of it
	same       []*rule // judge the same value, whatever it is
	all        []*rule // those of same that must fit: $ref and allOf
	pattern    *regexp.Regexp
	properties map[string]*rule
	patterns   []patternRule
	additional *rule // of objects, for what neither properties nor patterns name
	names      *rule // of the keys of objects
	anyMember  []*rule
	prefix     []*rule // of lists
	rest       *rule   // of lists, after prefix
	anyItem    []*rule
}

type patternRule struct {
	*regexp.Regexp
	*rule
}

// graph is a schema that is ready to judge.
type graph struct {
	root      *rule
	validator *jsonschema.Resolved
	branches  bool              // some value is judged by more than one schema
	declared  map[string]string // a name of properties anywhere, by folded name
	plain     map[string]bool   // those names that no other differs from by case only
}

// newGraph compiles a schema.
func newGraph(text []byte) (g *graph, err error) {
	defer func() {
		if r := recover(); r != nil {
			g, err = nil, errors.New("the validator cannot read it")
		}
	}()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	source, _, f := readStrict(text, false)
	if f != nil {
		return nil, errors.New(located("", f.path, f.problem, f.mend))
	}
	// The validator knows each dialect by one spelling, and refuses every value
	// under another.
	switch s.Schema {
	case dialects[1]:
		s.Schema = dialects[0]
	case dialects[3], dialects[5]:
		s.Schema = dialects[2]
	}
	b := &graphBuilder{graph: &graph{declared: map[string]string{}, plain: map[string]bool{}}, at: map[string]*rule{}, anchors: map[string]*rule{}, source: source}
	b.root = b.build(&s, "")
	if err := b.link(); err != nil {
		return nil, err
	}
	if b.validator, err = s.Resolve(nil); err != nil {
		return nil, err
	}
	return b.graph, nil
}

type graphBuilder struct {
	*graph
	source  any              // the schema as it was read
	at      map[string]*rule // by JSON pointer
	anchors map[string]*rule
}

// build makes the rules of a schema and those in it.
func (b *graphBuilder) build(s *jsonschema.Schema, at string) *rule {
	if s == nil {
		return nil
	}
	r := &rule{Schema: s}
	b.at[at] = r
	if b.lookup(at) == false {
		r.never = true
		return r
	}
	for _, name := range []string{s.Anchor, s.DynamicAnchor} {
		if name != "" {
			b.anchors[name] = r
		}
	}
	b.exact(r, at)
	if s.Pattern != "" {
		r.pattern = regexp.MustCompile(s.Pattern)
	}
	sub := func(s *jsonschema.Schema, key string) *rule { return b.build(s, at+"/"+key) }
	subs := func(list []*jsonschema.Schema, key string) (rules []*rule) {
		for i, s := range list {
			rules = append(rules, sub(s, key+"/"+strconv.Itoa(i)))
		}
		return rules
	}
	named := func(m map[string]*jsonschema.Schema, key string) map[string]*rule {
		rules := make(map[string]*rule, len(m))
		for k, s := range m {
			rules[k] = sub(s, key+"/"+pointerToken(k))
		}
		return rules
	}
	named(s.Defs, "$defs")
	named(s.Definitions, "definitions")
	sub(s.ContentSchema, "contentSchema")

	r.all = subs(s.AllOf, "allOf")
	r.same = slices.Concat(r.all, subs(s.AnyOf, "anyOf"), subs(s.OneOf, "oneOf"),
		present(sub(s.Not, "not"), sub(s.If, "if"), sub(s.Then, "then"), sub(s.Else, "else")),
		slices.Collect(maps.Values(named(s.DependentSchemas, "dependentSchemas"))),
		slices.Collect(maps.Values(named(s.DependencySchemas, "dependencies"))))

	r.properties = named(s.Properties, "properties")
	for pattern, p := range named(s.PatternProperties, "patternProperties") {
		r.patterns = append(r.patterns, patternRule{regexp.MustCompile(pattern), p})
	}
	r.additional = sub(s.AdditionalProperties, "additionalProperties")
	r.names = sub(s.PropertyNames, "propertyNames")
	r.anyMember = present(sub(s.UnevaluatedProperties, "unevaluatedProperties"))

	r.prefix = append(subs(s.PrefixItems, "prefixItems"), subs(s.ItemsArray, "items")...)
	r.rest = sub(s.Items, "items")
	if further := sub(s.AdditionalItems, "additionalItems"); s.ItemsArray != nil {
		r.rest = further
	}
	r.anyItem = present(sub(s.Contains, "contains"), sub(s.UnevaluatedItems, "unevaluatedItems"))

	for name := range r.properties {
		b.declare(name)
	}
	b.branches = b.branches || len(r.same)+len(r.patterns)+len(r.anyMember)+len(r.anyItem) > 0 || r.names != nil ||
		s.Ref != "" || s.DynamicRef != ""
	return r
}

func (b *graphBuilder) declare(name string) {
	folded := strictyaml.Fold(name)
	other, ok := b.declared[folded]
	if ok && other != name {
		b.plain[other] = false
	}
	b.plain[name] = !ok || other == name && b.plain[name]
	b.declared[folded] = name
}

// exact puts the values of enum and const as they are written in the place of
// the validator's, which are floats.
func (b *graphBuilder) exact(r *rule, at string) {
	keywords, _ := b.lookup(at).(objectValue)
	if list, ok := keywords["enum"].(listValue); ok {
		r.Enum = list
	}
	if v, ok := keywords["const"]; ok {
		r.Const = &v
	}
	r.text = len(r.Pattern)
	for _, v := range r.Enum {
		r.text += size(v)
	}
	if r.Const != nil {
		r.text += size(*r.Const)
	}
}

// link follows the references.
func (b *graphBuilder) link() error {
	for _, at := range slices.Sorted(maps.Keys(b.at)) {
		r := b.at[at]
		for _, ref := range []string{r.Ref, r.DynamicRef} {
			if ref == "" {
				continue
			}
			target, err := b.target(ref)
			if err != nil {
				return fmt.Errorf("%s: reference %q: %w", at, brief(ref), err)
			}
			r.same = append(r.same, target)
			r.all = append(r.all, target)
		}
	}
	return nil
}

func (b *graphBuilder) target(ref string) (*rule, error) {
	local, ok := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(local)
	if !ok || err != nil {
		return nil, errors.New("leaves the document")
	}
	r := b.anchors[fragment]
	if fragment == "" || fragment[0] == '/' {
		r = b.at[fragment]
	}
	if r == nil {
		return nil, errors.New("leads to no schema")
	}
	return r, nil
}

func present(rules ...*rule) []*rule {
	return slices.DeleteFunc(rules, func(r *rule) bool { return r == nil })
}

// lookup returns what a JSON pointer leads to in the schema as it was read; nil
// for nothing.
func (b *graphBuilder) lookup(pointer string) any {
	v := b.source
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch c := v.(type) {
		case objectValue:
			v = c[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		case listValue:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// size returns about how long a value is when it is written.
func size(v any) int {
	n := 8
	switch v := v.(type) {
	case textValue:
		n += len(v)
	case listValue:
		for _, e := range v {
			n += size(e)
		}
	case objectValue:
		for k, e := range v {
			n += len(k) + size(e)
		}
	}
	return n
}
