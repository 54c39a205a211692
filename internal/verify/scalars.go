package verify

import (
	"encoding/json"
	"math"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// number returns the number nearest to 0 or 1 that a schema's bounds leave.
func number(s map[string]any, integer bool) any {
	least, most := math.Inf(-1), math.Inf(1)
	step := 1.0
	if m, ok := float(s["multipleOf"]); ok && m > 0 {
		step = m
	}
	if v, ok := float(s["minimum"]); ok {
		least = v
	}
	if v, ok := float(s["exclusiveMinimum"]); ok {
		least = max(least, math.Nextafter(v, math.Inf(1)))
	}
	if v, ok := float(s["maximum"]); ok {
		most = v
	}
	if v, ok := float(s["exclusiveMaximum"]); ok {
		most = min(most, math.Nextafter(v, math.Inf(-1)))
	}
	_, stepped := s["multipleOf"]
	n := 1.0
	if integer || stepped {
		n = step
	}
	switch {
	case n < least && (integer || stepped):
		n = math.Ceil(least/step) * step
	case n < least:
		n = least
	case n > most && (integer || stepped):
		n = math.Floor(most/step) * step
	case n > most:
		n = most
	}
	if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return n
}

func float(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// whole returns a whole number that is not negative, or what holds without one.
func whole(v any, without int) int {
	f, ok := float(v)
	if !ok || f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
		return without
	}
	return int(f)
}

// formats are values for the formats of JSON Schema 2020-12, section 7.3.
var formats = map[string]string{
	"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "duration": "P1D",
	"email": "someone@example.com", "idn-email": "someone@example.com",
	"hostname": "example.com", "idn-hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "iri": "https://example.com/", "uri-reference": "/a", "iri-reference": "/a",
	"uri-template": "/{a}", "uuid": "00000000-0000-4000-8000-000000000000",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": "a",
}

// text returns a text of a schema's format or pattern, or of the least length
// above nothing.
func text(s map[string]any) string {
	if f, ok := s["format"].(string); ok {
		if v, ok := formats[f]; ok {
			return v
		}
	}
	if p, ok := s["pattern"].(string); ok {
		if r, err := syntax.Parse(p, syntax.Perl); err == nil {
			if b, ok := matching(nil, r.Simplify()); ok {
				return string(b)
			}
		}
	}
	n := min(max(1, whole(s["minLength"], 1)), maxText)
	if most := whole(s["maxLength"], n); most < n {
		n = most
	}
	return strings.Repeat("a", n)
}

// matching appends a short text that a regular expression matches; false where
// that would be long. Assertions are taken to hold.
func matching(b []byte, r *syntax.Regexp) ([]byte, bool) {
	if len(b) > maxText {
		return b, false
	}
	ok := true
	switch r.Op {
	case syntax.OpLiteral:
		b = append(b, string(r.Rune)...)
	case syntax.OpCharClass:
		if len(r.Rune) == 0 {
			return b, false
		}
		b = utf8.AppendRune(b, plainest(r.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b = append(b, 'a')
	case syntax.OpCapture, syntax.OpPlus:
		return matching(b, r.Sub[0])
	case syntax.OpRepeat:
		for range r.Min {
			if b, ok = matching(b, r.Sub[0]); !ok {
				break
			}
		}
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			if b, ok = matching(b, sub); !ok {
				break
			}
		}
	case syntax.OpAlternate:
		return matching(b, r.Sub[0])
	case syntax.OpNoMatch:
		return b, false
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	}
	return b, ok && len(b) <= maxText
}

// plainest returns a character of a class, given as ranges: a letter or digit
// where it has one.
func plainest(ranges []rune) rune {
	for _, want := range "a0A" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	return ranges[0]
}
