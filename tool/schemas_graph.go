package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// rule is one schema with those that it leads to, ready to judge.
type rule struct {
	*jsonschema.Schema
	never bool // the schema false

	// Rules for the same value.
	ref, dynamicRef       *rule
	allOf, anyOf, oneOf   []*rule
	not                   *rule
	cond, then, otherwise *rule            // if, then, else
	dependents            map[string]*rule // of objects, by the key that they need
	same                  []*rule          // all of these

	types            []string
	choices          []choice
	pattern          *pattern
	minimum, maximum any // numbers; nil: none
	above, below     any // exclusiveMinimum and exclusiveMaximum
	multiple         *divisor

	required      []string // distinct
	dependentKeys map[string][]string
	properties    map[string]*rule
	folded        map[uint64]string // names of properties, by fold
	patterns      []patternRule
	additional    *rule // for what neither properties nor patterns name
	names         *rule // for the keys themselves
	restMembers   *rule // unevaluatedProperties

	prefix    []*rule
	rest      *rule // for items after prefix
	contains  *rule
	restItems *rule // unevaluatedItems
}

type patternRule struct {
	*pattern
	*rule
}

// graph is a schema that is ready to judge.
type graph struct {
	root        *rule
	draft7      bool
	unevaluated bool              // some rule asks what others have judged
	declared    map[uint64]string // a name of properties anywhere, by fold
	plain       map[string]bool   // those names that no other differs from by case only
}

// newGraph compiles a schema, with the patterns that it shares with others.
func newGraph(text []byte, shared *patterns) (g *graph, err error) {
	defer func() {
		if r := recover(); r != nil {
			g, err = nil, errors.New("the validator cannot read it")
		}
	}()
	// First, as the library takes the square of the nesting.
	source, _, f := readStrict(text, false)
	if f != nil {
		return nil, errors.New(located("", f.path, f.problem, f.mend))
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	if s.Schema != "" && !slices.Contains(dialects, s.Schema) {
		return nil, fmt.Errorf("%q is not a known dialect", brief(s.Schema))
	}
	b := &graphBuilder{
		graph: &graph{draft7: slices.Contains(dialects[2:], s.Schema), declared: map[uint64]string{}, plain: map[string]bool{}},
		at:    map[string]*rule{}, anchors: map[string]*rule{}, source: source, shared: shared,
	}
	if b.root = b.build(&s, ""); b.err == nil {
		b.err = b.link()
	}
	if b.err != nil {
		return nil, b.err
	}
	return b.graph, nil
}

type graphBuilder struct {
	*graph
	source  any              // the schema as it was read
	at      map[string]*rule // by JSON pointer
	anchors map[string]*rule
	shared  *patterns
	err     error
}

// build makes the rules of a schema and those in it.
func (b *graphBuilder) build(s *jsonschema.Schema, at string) *rule {
	if s == nil || b.err != nil {
		return nil
	}
	r := &rule{Schema: s}
	b.at[at] = r
	if b.lookup(at) == false {
		r.never = true
		return r
	}
	for _, name := range []string{s.Anchor, s.DynamicAnchor} {
		if name == "" {
			continue
		}
		if b.anchors[name] != nil {
			b.fail(at, fmt.Errorf("the anchor %q is there twice", brief(name)))
		}
		b.anchors[name] = r
	}
	if s.ID != "" && at != "" {
		b.fail(at, errors.New("$id is below the root"))
	}
	b.build(s.ContentSchema, at+"/contentSchema")
	b.named(s.Defs, at+"/$defs")
	b.named(s.Definitions, at+"/definitions")
	b.value(r, at)
	b.inPlace(r, at)
	b.members(r, at)
	b.items(r, at)
	b.unevaluated = b.unevaluated || r.restMembers != nil || r.restItems != nil
	return r
}

func (b *graphBuilder) fail(at string, err error) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: %w", brief(at), err)
	}
}

func (b *graphBuilder) subs(list []*jsonschema.Schema, at string) (rules []*rule) {
	for i, s := range list {
		rules = append(rules, b.build(s, at+"/"+strconv.Itoa(i)))
	}
	return rules
}

func (b *graphBuilder) named(m map[string]*jsonschema.Schema, at string) map[string]*rule {
	if m == nil {
		return nil
	}
	rules := make(map[string]*rule, len(m))
	for k, s := range m {
		rules[k] = b.build(s, at+"/"+pointerToken(k))
	}
	return rules
}

// value prepares what a schema says about a value as a whole.
func (b *graphBuilder) value(r *rule, at string) {
	// Values as they are written: the library's numbers are floats.
	keywords, ok := b.lookup(at).(*objectValue)
	if !ok {
		return // the schema true
	}
	for i, key := range keywords.keys {
		if right, ok := foldedKeywords[strictyaml.Fold(key)]; ok && right != key {
			b.fail(at, fmt.Errorf("%q is another spelling of %s", brief(key), right))
		}
		if err := b.checkKeyword(key, keywords.values[i]); err != nil {
			b.fail(at, err)
			return
		}
	}
	r.types = r.Types
	if r.Type != "" {
		r.types = []string{r.Type}
	}
	if r.Pattern != "" {
		r.pattern = b.pattern(r.Pattern, at)
	}
	for key, bound := range map[string]*any{"minimum": &r.minimum, "maximum": &r.maximum, "exclusiveMinimum": &r.above, "exclusiveMaximum": &r.below} {
		*bound, _ = keywords.get(key)
	}
	if v, ok := keywords.get("multipleOf"); ok {
		m, _ := newDivisor(v)
		r.multiple = &m
	}
	if v, _ := keywords.get("enum"); v != nil {
		list, _ := v.(listValue) // the library takes no other
		b.choice(r, list, at)
	}
	if v, ok := keywords.get("const"); ok {
		b.choice(r, listValue{v}, at)
	}
}

func (b *graphBuilder) choice(r *rule, values listValue, at string) {
	c, err := newChoice(values)
	if err != nil {
		b.fail(at, err)
	}
	r.choices = append(r.choices, c)
}

func (b *graphBuilder) pattern(text, at string) *pattern {
	if b.err != nil {
		return nil
	}
	p, err := b.shared.get(text)
	if err != nil {
		b.fail(at, err)
		return nil
	}
	return p
}

// inPlace makes the rules for the same value.
func (b *graphBuilder) inPlace(r *rule, at string) {
	r.allOf = b.subs(r.AllOf, at+"/allOf")
	r.anyOf = b.subs(r.AnyOf, at+"/anyOf")
	r.oneOf = b.subs(r.OneOf, at+"/oneOf")
	r.not = b.build(r.Not, at+"/not")
	r.cond, r.then, r.otherwise = b.build(r.If, at+"/if"), b.build(r.Then, at+"/then"), b.build(r.Else, at+"/else")
	dependents, dependencies := b.named(r.DependentSchemas, at+"/dependentSchemas"), b.named(r.DependencySchemas, at+"/dependencies")
	keys := r.DependentRequired
	r.dependents = dependents
	if b.draft7 {
		r.dependents, keys = dependencies, r.DependencyStrings
	}
	for key, list := range keys {
		if r.dependentKeys == nil {
			r.dependentKeys = map[string][]string{}
		}
		r.dependentKeys[key] = distinct(list)
	}
	r.same = slices.Concat(r.allOf, r.anyOf, r.oneOf, present(r.not, r.cond, r.then, r.otherwise),
		slices.Collect(maps.Values(dependents)), slices.Collect(maps.Values(dependencies)))
}

// distinct returns a list without what it repeats.
func distinct(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// members makes the rules for objects.
func (b *graphBuilder) members(r *rule, at string) {
	r.required = distinct(r.Required)
	r.properties = b.named(r.Properties, at+"/properties")
	r.folded = make(map[uint64]string, len(r.properties))
	for name := range r.properties {
		r.folded[foldOf(name)] = name
		b.declare(name)
	}
	rules := b.named(r.PatternProperties, at+"/patternProperties")
	for _, text := range slices.Sorted(maps.Keys(rules)) {
		if p := b.pattern(text, at); p != nil {
			r.patterns = append(r.patterns, patternRule{p, rules[text]})
		}
	}
	r.additional = b.build(r.AdditionalProperties, at+"/additionalProperties")
	r.names = b.build(r.PropertyNames, at+"/propertyNames")
	r.restMembers = b.build(r.UnevaluatedProperties, at+"/unevaluatedProperties")
}

// items makes the rules for lists. The keywords of the other dialect are no
// keywords.
func (b *graphBuilder) items(r *rule, at string) {
	prefix, list := b.subs(r.PrefixItems, at+"/prefixItems"), b.subs(r.ItemsArray, at+"/items")
	items, further := b.build(r.Items, at+"/items"), b.build(r.AdditionalItems, at+"/additionalItems")
	switch {
	case !b.draft7:
		r.prefix, r.rest = prefix, items
	case r.ItemsArray != nil:
		r.prefix, r.rest = list, further
	default:
		r.rest = items
	}
	r.contains = b.build(r.Contains, at+"/contains")
	r.restItems = b.build(r.UnevaluatedItems, at+"/unevaluatedItems")
}

func (b *graphBuilder) declare(name string) {
	folded := foldOf(name)
	other, ok := b.declared[folded]
	if ok && other != name {
		b.plain[other] = false
	}
	b.plain[name] = !ok || other == name && b.plain[name]
	b.declared[folded] = name
}

// link follows the references.
func (b *graphBuilder) link() error {
	for _, at := range slices.Sorted(maps.Keys(b.at)) {
		r := b.at[at]
		var err error
		if r.ref, err = b.target(r.Ref); err != nil {
			return fmt.Errorf("%s: reference %q: %w", at, brief(r.Ref), err)
		}
		if r.dynamicRef, err = b.target(r.DynamicRef); err != nil {
			return fmt.Errorf("%s: reference %q: %w", at, brief(r.DynamicRef), err)
		}
		r.same = append(r.same, present(r.ref, r.dynamicRef)...)
	}
	return nil
}

// target returns what a reference leads to; nil for none. In one document that
// has each anchor once, a dynamic reference leads where any does.
func (b *graphBuilder) target(ref string) (*rule, error) {
	if ref == "" {
		return nil, nil
	}
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
		case *objectValue:
			v, _ = c.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
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
