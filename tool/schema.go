package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
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
		m[fold(k)] = k
	}
	return m
}()

// maxWork bounds how many subschemas judge one value: validation follows them
// one after the other for each call.
const maxWork = 4096

// schema checks a schema and returns it as JSON, keys in the author's order.
// It must compile, stay within its own document, and end: references that lead
// back to themselves without going deeper into the value are refused.
func (d *decoder) schema(v value, input bool) json.RawMessage {
	if !v.is(mapKind, "write a JSON Schema, for example {type: object}") {
		return nil
	}
	if t := v.n.get("type"); input && (t == nil || t.kind != stringKind || t.text != "object") {
		v.fail("has no type object", "write type: object")
	}
	text := v.n.json(false)
	if len(text) > maxSchema {
		v.fail(fmt.Sprintf("larger than %d bytes as JSON", maxSchema), "shorten it")
	}
	c := &schemaCheck{root: v, anchors: map[string]*node{}, known: map[*node]value{}, headers: map[string]*trail{}}
	c.text(v)
	if !d.failed() {
		c.walk(v, input)
	}
	if !d.failed() {
		c.finish()
	}
	if d.failed() {
		return nil
	}
	if err := compile(text); err != nil {
		v.fail("does not compile: "+clip(oneLine(err.Error())), "write JSON Schema 2020-12 with RE2 patterns")
	}
	return text
}

// compile reports why the validator cannot use a schema.
func compile(text []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the validator cannot read it")
		}
	}()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	_, err = s.Resolve(nil)
	return err
}

type schemaCheck struct {
	root    value
	anchors map[string]*node
	known   map[*node]value   // every schema below root
	order   []*node           // the same, as they come
	headers map[string]*trail // folded x-mcp-header to the place that has it
}

// text refuses hidden characters in every key and text of a schema: models
// read all of it.
func (c *schemaCheck) text(v value) {
	if h := hiddenIn(v.n.text); v.n.kind == stringKind && h != "" {
		v.fail("holds "+h, "remove it, or write it as an escape of a pattern")
	}
	for _, e := range v.n.entries {
		at := v.in(e)
		if h := hiddenIn(e.key); h != "" {
			at.fail("the key holds "+h, "remove it")
		}
		c.text(at)
	}
	for i, n := range v.n.items {
		c.text(value{d: v.d, n: n, trail: &trail{up: v.trail, index: i}, line: n.line, column: n.column})
	}
}

// walk visits a schema and those in it. chain says that it is reached from the
// root of an input schema through properties alone.
func (c *schemaCheck) walk(v value, chain bool) {
	if v.d.failed() {
		return
	}
	if v.n.kind == boolKind {
		c.known[v.n] = v
		c.order = append(c.order, v.n)
		return
	}
	if !v.is(mapKind, "write a schema: a mapping, true or false") {
		return
	}
	c.known[v.n] = v
	c.order = append(c.order, v.n)
	o := object{v}
	for _, e := range v.n.entries {
		right, ok := foldedKeywords[fold(e.key)]
		at := v.in(e)
		if ok && right != e.key {
			at.fail("unknown spelling of "+right, "write "+right)
			return
		}
		c.enter(at, e.key, chain)
	}
	c.types(o.field("type"))
	c.identity(o)
	c.header(o, chain)
}

var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// types checks the keyword type, which the validator takes as it comes: a
// value of no known type would never match, or never be checked.
func (c *schemaCheck) types(v value) {
	const mend = "write string, number, integer, boolean, object, array or null"
	known := func(s string) bool { return slices.Contains(typeNames, s) }
	switch {
	case !v.present():
	case v.n.kind == listKind:
		v.texts(mend, known)
	default:
		v.pattern(known, mend)
	}
}

// enter visits the schemas that one keyword holds.
func (c *schemaCheck) enter(v value, key string, chain bool) {
	switch holds := keywords[key].holds; {
	case holds == holdsSchema, holds == holdsEither && v.n.kind != listKind:
		c.walk(v, false)
	case holds == holdsSchemas, holds == holdsEither:
		for _, item := range v.each("write a list of schemas") {
			c.walk(item, false)
		}
	case holds == holdsNamed:
		if !v.is(mapKind, "write name: schema") {
			return
		}
		for _, e := range v.n.entries {
			if key == "dependencies" && e.value.kind == listKind {
				continue
			}
			c.walk(v.in(e), chain && key == "properties")
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
func (c *schemaCheck) identity(o object) {
	const local = "write a reference into this schema, for example #/$defs/item"
	for _, key := range []string{"$ref", "$dynamicRef"} {
		f := o.field(key)
		if ref := f.text(local); f.present() && !strings.HasPrefix(ref, "#") {
			f.fail(quote(ref)+" leaves the document", local)
		}
	}
	if f := o.field("$id"); f.present() && o.n != c.root.n {
		f.fail("is below the root", "remove it and refer with #/…")
	}
	if f := o.field("$schema"); f.present() && !slices.Contains(dialects, f.text("write the URI of a dialect")) {
		f.fail(quote(f.n.text)+" is not a known dialect", "write "+dialects[0])
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if f := o.field(key); f.present() {
			name := f.text("write a name")
			if _, ok := c.anchors[name]; ok {
				f.fail("the anchor "+quote(name)+" is there twice", "rename one")
			}
			c.anchors[name] = o.n
		}
	}
}

// finish resolves the references and checks that judging a value ends.
func (c *schemaCheck) finish() {
	work := make(map[*node]int, len(c.order))
	for _, n := range c.order {
		if c.work(n, work); c.root.d.failed() {
			return
		}
	}
}

// work returns how many schemas judge a value together with n.
func (c *schemaCheck) work(n *node, done map[*node]int) int {
	const open = -1
	v := c.known[n]
	switch w := done[n]; {
	case w == open:
		v.fail("refers back to itself for the same value", "go through properties or items in between")
		return 0
	case w > 0:
		return w
	}
	done[n] = open
	sum := 1
	for _, next := range c.inPlace(v) {
		if sum += c.work(next, done); v.d.failed() {
			return 0
		}
		if sum > maxWork {
			v.fail(fmt.Sprintf("applies more than %d schemas to one value", maxWork), "simplify allOf, anyOf and oneOf")
			return 0
		}
	}
	done[n] = sum
	return sum
}

// inPlace returns the schemas that judge the same value as v.
func (c *schemaCheck) inPlace(v value) []*node {
	var list []*node
	for _, e := range v.n.entries {
		switch k := keywords[e.key]; {
		case e.key == "$ref" || e.key == "$dynamicRef":
			t := c.target(e.value.text)
			if t == nil {
				object{v}.field(e.key).fail(quote(e.value.text)+" leads to no schema", "write a reference into this schema, for example #/$defs/item")
				return nil
			}
			list = append(list, t)
		case k.inPlace && k.holds == holdsSchema:
			list = append(list, e.value)
		case k.inPlace && k.holds == holdsSchemas:
			list = append(list, e.value.items...)
		case k.inPlace && k.holds == holdsNamed:
			for _, d := range e.value.entries {
				if _, ok := c.known[d.value]; ok {
					list = append(list, d.value)
				}
			}
		}
	}
	return list
}

// target returns the schema that a reference leads to, or nil.
func (c *schemaCheck) target(ref string) *node {
	u, err := url.Parse(ref)
	if err != nil {
		return nil
	}
	if u.Fragment == "" {
		return c.root.n
	}
	if !strings.HasPrefix(u.Fragment, "/") {
		return c.anchors[u.Fragment]
	}
	n := c.root.n
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

func step(n *node, seg string) *node {
	if n.kind == mapKind {
		return n.get(seg)
	}
	for i, item := range n.items {
		if seg == fmt.Sprint(i) {
			return item
		}
	}
	return nil
}
