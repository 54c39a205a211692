package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// place says what a keyword of JSON Schema holds.
type place uint8

const (
	holdsData place = iota
	holdsSchema
	holdsSchemas // a list
	holdsNamed   // a mapping from names to schemas
	holdsEither  // a schema or a list of them
)

// keyword says what a keyword holds, and whether what it holds judges the same
// value as the schema it stands in.
type keyword struct {
	holds   place
	inPlace bool
}

// keywords are those of JSON Schema 2020-12, with those of draft 7 that tools
// still use. Keywords that are not here are annotations.
var keywords = map[string]keyword{
	"$defs": {holds: holdsNamed}, "definitions": {holds: holdsNamed},
	"properties": {holds: holdsNamed}, "patternProperties": {holds: holdsNamed},
	"dependentSchemas": {holdsNamed, true}, "dependencies": {holdsNamed, true},
	"allOf": {holdsSchemas, true}, "anyOf": {holdsSchemas, true}, "oneOf": {holdsSchemas, true},
	"not": {holdsSchema, true}, "if": {holdsSchema, true}, "then": {holdsSchema, true}, "else": {holdsSchema, true},
	"prefixItems": {holds: holdsSchemas}, "items": {holds: holdsEither},
	"additionalItems": {holds: holdsSchema}, "unevaluatedItems": {holds: holdsSchema}, "contains": {holds: holdsSchema},
	"additionalProperties": {holds: holdsSchema}, "unevaluatedProperties": {holds: holdsSchema},
	"propertyNames": {holds: holdsSchema}, "contentSchema": {holds: holdsSchema},
	"$ref": {}, "$dynamicRef": {}, "$id": {}, "$schema": {}, "$anchor": {}, "$dynamicAnchor": {},
	"$comment": {}, "$vocabulary": {}, "type": {}, "enum": {}, "const": {}, "required": {}, "dependentRequired": {},
	"pattern": {}, "format": {}, "multipleOf": {}, "minimum": {}, "maximum": {}, "exclusiveMinimum": {}, "exclusiveMaximum": {},
	"minLength": {}, "maxLength": {}, "minItems": {}, "maxItems": {}, "uniqueItems": {}, "minContains": {}, "maxContains": {},
	"minProperties": {}, "maxProperties": {}, "title": {}, "description": {}, "default": {}, "examples": {},
	"deprecated": {}, "readOnly": {}, "writeOnly": {}, "contentEncoding": {}, "contentMediaType": {}, headerKeyword: {},
}

var foldedKeywords = func() map[string]string {
	m := make(map[string]string, len(keywords))
	for k := range keywords {
		m[strictyaml.Fold(k)] = k
	}
	return m
}()

// maxWork bounds how many subschemas judge one value: validation follows them
// one after the other for each call.
const maxWork = 4096

// schema checks a schema and returns it as JSON, keys in the author's order.
// It must compile, stay within its own document, and end: references that lead
// back to themselves without going deeper into the value are refused.
func (d *decoder) schema(v strictyaml.Value, input bool) json.RawMessage {
	if !v.Is(strictyaml.Map, "write a JSON Schema, for example {type: object}") {
		return nil
	}
	if t := v.Node.Get("type"); input && (t == nil || t.Kind != strictyaml.Text || t.Text != "object") {
		v.Fail("has no type object", "write type: object")
	}
	text := v.Node.JSON(false)
	if len(text) > maxSchema {
		v.Fail(fmt.Sprintf("larger than %d bytes as JSON", maxSchema), "shorten it")
	}
	c := &schemaCheck{root: v, anchors: map[string]*strictyaml.Node{}, known: map[*strictyaml.Node]strictyaml.Value{}, headers: map[string]*strictyaml.Trail{}}
	c.text(v)
	if !d.Failed() {
		c.walk(v, input)
	}
	if !d.Failed() {
		c.finish()
	}
	if d.Failed() {
		return nil
	}
	if _, err := newGraph(text, &d.patterns); err != nil {
		problem, mend := err.Error(), "write JSON Schema 2020-12 with RE2 patterns"
		if f, ok := errors.AsType[*flaw](err); ok {
			problem, mend = strings.TrimSuffix(problem, "; "+f.mend), f.mend
		}
		v.Fail("does not compile: "+strictyaml.Clip(strictyaml.OneLine(problem)), mend)
	}
	return text
}

type schemaCheck struct {
	root    strictyaml.Value
	anchors map[string]*strictyaml.Node
	known   map[*strictyaml.Node]strictyaml.Value // every schema below root
	order   []*strictyaml.Node                    // the same, as they come
	headers map[string]*strictyaml.Trail          // folded x-mcp-header to the place that has it
}

// text refuses hidden characters in every key and text of a schema: models
// read all of it.
func (c *schemaCheck) text(v strictyaml.Value) {
	if h := strictyaml.HiddenIn(v.Node.Text); v.Node.Kind == strictyaml.Text && h != "" {
		v.Fail("holds "+h, "remove it, or write it as an escape of a pattern")
	}
	for _, e := range v.Node.Entries {
		at := v.In(e)
		if h := strictyaml.HiddenIn(e.Key); h != "" {
			at.Fail("the key holds "+h, "remove it")
		}
		c.text(at)
	}
	for _, item := range v.Items() {
		c.text(item)
	}
}

// walk visits a schema and those in it. chain says that it is reached from the
// root of an input schema through properties alone.
func (c *schemaCheck) walk(v strictyaml.Value, chain bool) {
	if v.Failed() {
		return
	}
	if v.Node.Kind == strictyaml.Bool {
		c.known[v.Node] = v
		c.order = append(c.order, v.Node)
		return
	}
	if !v.Is(strictyaml.Map, "write a schema: a mapping, true or false") {
		return
	}
	c.known[v.Node] = v
	c.order = append(c.order, v.Node)
	for _, e := range v.Node.Entries {
		right, ok := foldedKeywords[strictyaml.Fold(e.Key)]
		at := v.In(e)
		if ok && right != e.Key {
			at.Fail("unknown spelling of "+right, "write "+right)
			return
		}
		c.enter(at, e.Key, chain)
	}
	c.types(v.Field("type"))
	c.identity(v)
	c.header(v, chain)
}

var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// types checks the keyword type, which the validator takes as it comes: a
// value of no known type would never match, or never be checked.
func (c *schemaCheck) types(v strictyaml.Value) {
	const mend = "write string, number, integer, boolean, object, array or null"
	known := func(s string) bool { return slices.Contains(typeNames, s) }
	switch {
	case !v.Present():
	case v.Node.Kind == strictyaml.List:
		v.Texts(mend, known)
	default:
		v.Pattern(known, mend)
	}
}

// enter visits the schemas that one keyword holds.
func (c *schemaCheck) enter(v strictyaml.Value, key string, chain bool) {
	switch holds := keywords[key].holds; {
	case holds == holdsSchema, holds == holdsEither && v.Node.Kind != strictyaml.List:
		c.walk(v, false)
	case holds == holdsSchemas, holds == holdsEither:
		for _, item := range v.Each("write a list of schemas") {
			c.walk(item, false)
		}
	case holds == holdsNamed:
		if !v.Is(strictyaml.Map, "write name: schema") {
			return
		}
		for _, e := range v.Node.Entries {
			if key == "dependencies" && e.Value.Kind == strictyaml.List {
				continue
			}
			c.walk(v.In(e), chain && key == "properties")
		}
	}
}

var dialects = []string{
	"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#",
	"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
	"https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema",
}

// identity checks the keywords that name schemas. Only the root may have an
// $id, so that every reference is one into the same document.
func (c *schemaCheck) identity(o strictyaml.Value) {
	const local = "write a reference into this schema, for example #/$defs/item"
	for _, key := range []string{"$ref", "$dynamicRef"} {
		f := o.Field(key)
		if ref := f.Text(local); f.Present() && !strings.HasPrefix(ref, "#") {
			f.Fail(strictyaml.Quote(ref)+" leaves the document", local)
		}
	}
	if f := o.Field("$id"); f.Present() && o.Node != c.root.Node {
		f.Fail("is below the root", "remove it and refer with #/…")
	}
	if f := o.Field("$schema"); f.Present() && !slices.Contains(dialects, f.Text("write the URI of a dialect")) {
		f.Fail(strictyaml.Quote(f.Node.Text)+" is not a known dialect", "write "+dialects[0])
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if f := o.Field(key); f.Present() {
			name := f.Text("write a name")
			if _, ok := c.anchors[name]; ok {
				f.Fail("the anchor "+strictyaml.Quote(name)+" is there twice", "rename one")
			}
			c.anchors[name] = o.Node
		}
	}
}

// finish resolves the references and checks that judging a value ends.
func (c *schemaCheck) finish() {
	work := make(map[*strictyaml.Node]int, len(c.order))
	for _, n := range c.order {
		if c.work(n, work); c.root.Failed() {
			return
		}
	}
}

// work returns how many schemas judge a value together with n.
func (c *schemaCheck) work(n *strictyaml.Node, done map[*strictyaml.Node]int) int {
	const open = -1
	v := c.known[n]
	switch w := done[n]; {
	case w == open:
		v.Fail("refers back to itself for the same value", "go through properties or items in between")
		return 0
	case w > 0:
		return w
	}
	done[n] = open
	sum := 1
	for _, next := range c.inPlace(v) {
		if sum += c.work(next, done); v.Failed() {
			return 0
		}
		if sum > maxWork {
			v.Fail(fmt.Sprintf("applies more than %d schemas to one value", maxWork), "simplify allOf, anyOf and oneOf")
			return 0
		}
	}
	done[n] = sum
	return sum
}

// inPlace returns the schemas that judge the same value as v.
func (c *schemaCheck) inPlace(v strictyaml.Value) []*strictyaml.Node {
	var list []*strictyaml.Node
	for _, e := range v.Node.Entries {
		switch k := keywords[e.Key]; {
		case e.Key == "$ref" || e.Key == "$dynamicRef":
			t := c.target(e.Value.Text)
			if t == nil {
				v.Field(e.Key).Fail(strictyaml.Quote(e.Value.Text)+" leads to no schema", "write a reference into this schema, for example #/$defs/item")
				return nil
			}
			list = append(list, t)
		case k.inPlace && k.holds == holdsSchema:
			list = append(list, e.Value)
		case k.inPlace && k.holds == holdsSchemas:
			list = append(list, e.Value.Items...)
		case k.inPlace && k.holds == holdsNamed:
			for _, d := range e.Value.Entries {
				if _, ok := c.known[d.Value]; ok {
					list = append(list, d.Value)
				}
			}
		}
	}
	return list
}

// target returns the schema that a reference leads to, or nil.
func (c *schemaCheck) target(ref string) *strictyaml.Node {
	u, err := url.Parse(ref)
	if err != nil {
		return nil
	}
	if u.Fragment == "" {
		return c.root.Node
	}
	if !strings.HasPrefix(u.Fragment, "/") {
		return c.anchors[u.Fragment]
	}
	n := c.root.Node
	for seg := range strings.SplitSeq(u.Fragment[1:], "/") {
		seg = strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)
		if n = step(n, seg); n == nil {
			return nil
		}
	}
	if _, ok := c.known[n]; !ok {
		return nil
	}
	return n
}

func step(n *strictyaml.Node, seg string) *strictyaml.Node {
	if n.Kind == strictyaml.Map {
		return n.Get(seg)
	}
	for i, item := range n.Items {
		if seg == fmt.Sprint(i) {
			return item
		}
	}
	return nil
}
