package tool

import (
	"fmt"
	"slices"
	"strings"
)

// shape says what the value of a keyword must be that holds no schema.
type shape struct {
	is   func(v any) bool
	mend string
}

func isText(v any) bool { _, ok := v.(textValue); return ok }

func isNumber(v any) bool {
	t := typeOf(v)
	return t == "integer" || t == "number"
}

// isCount takes an integer that is not negative and fits an int everywhere.
func isCount(v any) bool {
	i, ok := v.(int64)
	return ok && i >= 0 && i <= 1<<31-1
}

func isFlag(v any) bool { _, ok := v.(bool); return ok }

func isList(v any) bool { _, ok := v.(listValue); return ok }

func isObject(v any) bool { _, ok := v.(*objectValue); return ok }

func isTexts(v any) bool {
	l, ok := v.(listValue)
	return ok && !slices.ContainsFunc(l, func(e any) bool { return !isText(e) })
}

func isTypes(v any) bool {
	known := func(v any) bool { t, ok := v.(textValue); return ok && slices.Contains(typeNames, string(t)) }
	l, ok := v.(listValue)
	return known(v) || ok && len(l) > 0 && !slices.ContainsFunc(l, func(e any) bool { return !known(e) })
}

func isNamedTexts(v any) bool {
	o, ok := v.(*objectValue)
	return ok && !slices.ContainsFunc(o.values, func(e any) bool { return !isTexts(e) })
}

func isDivisor(v any) bool { _, ok := newDivisor(v); return ok }

func isLocal(v any) bool { t, ok := v.(textValue); return ok && strings.HasPrefix(string(t), "#") }

var (
	aText      = shape{isText, "write text"}
	aNumber    = shape{isNumber, "write a number"}
	aCount     = shape{isCount, "write an integer from 0 to 2147483647"}
	aFlag      = shape{isFlag, "write true or false"}
	aReference = shape{isLocal, "write a reference into this schema, for example #/$defs/item"}
)

// shapes are of the keywords that are judged by, and of those that name schemas.
var shapes = map[string]shape{
	"type":  {isTypes, "write string, number, integer, boolean, object, array or null, or a list of some"},
	"enum":  {isList, "write a list of values"},
	"title": aText, "description": aText, "$comment": aText, "pattern": aText, "format": aText,
	"$id": aText, "$schema": aText, "$anchor": aText, "$dynamicAnchor": aText, "$ref": aReference, "$dynamicRef": aReference,
	"minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aNumber, "exclusiveMaximum": aNumber,
	"multipleOf": {isDivisor, "write a number over 0, of 18 digits at most"},
	"minLength":  aCount, "maxLength": aCount, "minItems": aCount, "maxItems": aCount, "minContains": aCount, "maxContains": aCount,
	"minProperties": aCount, "maxProperties": aCount, "uniqueItems": aFlag,
	"required":          {isTexts, "write a list of names"},
	"dependentRequired": {isNamedTexts, "write name: [names]"},
}

// flaw is what makes a schema one that is not judged by.
type flaw struct{ problem, mend string }

func (f *flaw) Error() string { return f.problem + "; " + f.mend }

// laterThanDraft7 are the keywords that draft 7 does not know: a validator
// passes over them, and the author does not know.
var laterThanDraft7 = []string{
	"$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "prefixItems", "minContains", "maxContains",
	"unevaluatedItems", "unevaluatedProperties", "dependentRequired", "dependentSchemas",
}

// checkKeyword returns what is wrong with a keyword of a schema, with the mend.
func (b *graphBuilder) checkKeyword(key string, v any) error {
	if b.draft7 && slices.Contains(laterThanDraft7, key) {
		return &flaw{key + " is not of draft 7", "write $schema: " + dialects[0] + ", or leave it out"}
	}
	if key == "$vocabulary" {
		return &flaw{"$vocabulary is for schemas of schemas", "leave it out"}
	}
	if key == "items" && isList(v) && !b.draft7 {
		return &flaw{"items is a list", "write prefixItems, or $schema: " + dialects[2]}
	}
	if s, ok := shapes[key]; ok && !s.is(v) {
		return &flaw{fmt.Sprintf("%s must not be %s", key, shown(v)), s.mend}
	}
	return checkHeld(key, v)
}

// shown returns a value of a schema as JSON, clipped.
func shown(v any) string {
	switch v := v.(type) {
	case listValue:
		if len(v) == 0 {
			return "an empty list"
		}
	case textValue:
		return fmt.Sprintf("%q", brief(string(v)))
	case int64, decimalValue:
		return numberText(v)
	}
	return article(typeOf(v))
}

// checkHeld checks that a keyword which holds schemas does.
func checkHeld(key string, v any) error {
	schema := func(v any) bool { return isObject(v) || isFlag(v) }
	l, list := v.(listValue)
	all := list && len(l) > 0 && !slices.ContainsFunc(l, func(e any) bool { return !schema(e) })
	fits, mend := true, ""
	switch keywords[key].holds {
	case holdsData:
	case holdsSchema:
		fits, mend = schema(v), "write a schema: an object, true or false"
	case holdsSchemas:
		fits, mend = all, "write a list of schemas, of one at least"
	case holdsEither:
		fits, mend = schema(v) || all, "write a schema"
	case holdsNamed:
		o, ok := v.(*objectValue)
		fits, mend = ok && !slices.ContainsFunc(o.values, func(e any) bool {
			return !schema(e) && (key != "dependencies" || !isTexts(e))
		}), "write name: schema"
	}
	if !fits {
		return &flaw{fmt.Sprintf("%s must not be %s", key, shown(v)), mend}
	}
	return nil
}
