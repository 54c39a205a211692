package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

// pair is a schema and a value that are as dear together as one can make them.
type pair struct {
	name   string
	bounds bound
	schema string
	value  func(n int) string // of about n parts
	parts  int                // of a value as large as one may be
}

// bound says what keeps the cost of a pair low.
type bound int

const (
	linear   bound = iota // few steps for each byte of the value
	stopped               // the steps run out
	anything              // one or the other, by how large the value is
)

// joined writes n parts, with the number of each where they have %d.
func joined(n int, part string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(part, "%") {
			fmt.Fprintf(&b, part, i)
		} else {
			b.WriteString(part)
		}
	}
	return b.String()
}

func listOf(part string) func(int) string {
	return func(n int) string { return `{"a":[` + joined(n, part) + `]}` }
}

func objectOf(part string) func(int) string {
	return func(n int) string { return `{"a":{` + joined(n, part) + `}}` }
}

func under(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }

func nested(open string, levels int, inner, shut string) func(int) string {
	return func(int) string { return strings.Repeat(open, levels) + inner + strings.Repeat(shut, levels) }
}

func costly() []pair {
	const most = 1<<18 - 64
	many := func(n int) string { return `"properties":{` + joined(n, `"p%d":{}`) + `}` }
	// A chain of n references, whose end judges members by its start.
	chain := func(n int, end string) string {
		return `{"type":"object","$ref":"#/$defs/d0","$defs":{` + joined(n, `"d%[1]d":{"$ref":"#/$defs/e%[1]d"}`) + `,` +
			func() string {
				var b strings.Builder
				for i := range n {
					next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
					if i == n-1 {
						next = end
					}
					fmt.Fprintf(&b, `"e%d":%s,`, i, next)
				}
				return b.String()
			}() + `"z":{}}}`
	}
	return []pair{
		{"properties that empty objects lack", linear, under(`{"items":{` + many(800) + `}}`), listOf(`{}`), most},
		{"properties that small objects lack", linear, under(`{"items":{` + many(800) + `}}`), listOf(`{"x":1}`), most / 2},
		{
			"the same, and a spelling in doubt", linear, `{"type":"object","properties":{"A":{},"a":{"items":{` + many(800) + `}},"free":{"type":"object"}}}`,
			func(n int) string { return `{"free":{"P1":1,"A":1},"a":[` + joined(n, `{}`) + `]}` }, most - 4,
		},
		{
			"a spelling in doubt, and rules for each item", stopped, `{"type":"object","properties":{"free":{},"a":{"items":{"allOf":[` + joined(250, `{"properties":{"b":{}}}`) + `]}}}}`,
			func(n int) string { return `{"free":{"B":1},"a":[` + joined(n, `{"c":1}`) + `]}` }, most / 2,
		},
		{
			"required names that are there", linear, under(`{"items":{"required":[` + joined(800, `"p%d"`) + `]}}`),
			func(n int) string { return `{"a":[` + joined(n, `{`+joined(800, `"p%d":1`)+`}`) + `]}` }, 60,
		},
		{"alternatives for each item", stopped, under(`{"items":{"anyOf":[` + joined(250, `{"required":["p%d"]}`) + `,{}]}}`), listOf(`{"x":1}`), most / 2},
		{"alternatives that all fit", stopped, under(`{"items":{"anyOf":[` + joined(250, `{"properties":{"x":{}}}`) + `],"unevaluatedProperties":false}}`), listOf(`{"x":1}`), most / 2},
		{"marks of a large object", stopped, under(`{"allOf":[` + joined(250, `{"additionalProperties":true}`) + `],"unevaluatedProperties":false}`), objectOf(`"k%d":1`), most - 2},
		{"marks of a large list", stopped, under(`{"allOf":[` + joined(250, `{"contains":true}`) + `],"unevaluatedItems":false}`), listOf(`1`), most - 2},
		{"alternatives in one another", stopped, `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"anyOf":[
			{"$ref":"#/$defs/n","required":["x"]},{"$ref":"#/$defs/n","required":["y"]},{"$ref":"#/$defs/n"}]}}}}}`, nested(`{"a":`, 60, "1", "}"), 1},
		{"a chain of references at each level", stopped, chain(300, `{"additionalProperties":{"$ref":"#/$defs/d0"}}`), nested(`{"a":`, 60, "1", "}"), 1},
		{"a chain of references for each member", linear, chain(300, `{}`), objectOf(`"k%d":1`), most - 2},
		{"a circle of references", stopped, `{"type":"object","allOf":[{"$ref":"#"}]}`, objectOf(`"k%d":1`), 1},
		{"one of many values", linear, under(`{"items":{"enum":[` + joined(2000, `"v%d"`) + `]}}`), listOf(`"v1999"`), most - 2},
		{
			"enum of a large value at each level", anything, `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"enum":[1],"type":"object"},"m":{"not":{"enum":[{}]},"additionalProperties":{"$ref":"#/$defs/m"}}},"additionalProperties":{"$ref":"#/$defs/m"}}`,
			func(n int) string {
				return strings.Repeat(`{"a":`, 60) + `{` + joined(n, `"k%d":1`) + `}` + strings.Repeat("}", 60)
			}, most - 64,
		},
		{
			"not one value, at each level", anything, `{"type":"object","additionalProperties":{"$ref":"#/$defs/m"},"$defs":{"m":{"not":{"enum":[{}]},"additionalProperties":{"$ref":"#/$defs/m"}}}}`,
			func(n int) string {
				return strings.Repeat(`{"a":`, 60) + `{` + joined(n, `"k%d":1`) + `}` + strings.Repeat("}", 60)
			}, most - 64,
		},
		{
			"the same once at each level", anything, `{"type":"object","additionalProperties":{"$ref":"#/$defs/m"},"$defs":{"m":{"uniqueItems":true,"items":{"$ref":"#/$defs/m"}}}}`,
			func(n int) string {
				return `{"a":` + strings.Repeat(`[`, 60) + joined(n, `%d.5`) + strings.Repeat("]", 60) + `}`
			}, most - 64,
		},
		{"the same once, long texts", linear, under(`{"uniqueItems":true}`), func(n int) string { return `{"a":[` + joined(n, `"`+strings.Repeat("x", 4000)+`%d"`) + `]}` }, 1000},
		{"numbers and bounds", linear, under(`{"items":{"minimum":-1e300,"maximum":1e300,"exclusiveMinimum":-1e301,"multipleOf":1e-9}}`), listOf(`123456789012%d`), most - 2},
		{"multiples of long numbers", linear, under(`{"items":{"multipleOf":7}}`), listOf(`1` + strings.Repeat("3", 300)), 1 << 14},
		{"multiples of far numbers", anything, under(`{"items":{"multipleOf":7e-300}}`), listOf(`7e300`), most - 2},
		{"bounds and long numbers", anything, under(`{"items":{"allOf":[` + joined(250, `{"minimum":1}`) + `]}}`), listOf(`1.` + strings.Repeat("3", 300)), 1 << 14},
		{"patterns of a long text", anything, under(`{"anyOf":[` + joined(500, `{"pattern":"^b%d$"}`) + `,{}]}`), func(n int) string { return `{"a":"` + strings.Repeat("a", n) + `"}` }, 4 << 20},
		{"a pattern with many states", anything, under(`{"pattern":"(x?){500}y"}`), func(n int) string { return `{"a":"` + strings.Repeat("x", n) + `"}` }, 8 << 20 / 1600},
		{"a pattern that doubts", anything, under(`{"pattern":"(a|aa|aaa|b)*c$"}`), func(n int) string { return `{"a":"` + strings.Repeat("a", n) + `"}` }, 500_000},
		{"a pattern that does not doubt", linear, under(`{"pattern":"^[a-z]+$"}`), func(n int) string { return `{"a":"` + strings.Repeat("a", n) + `"}` }, 4 << 20},
		{
			"a pattern of a few characters, often", linear, under(`{"items":{"pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}`),
			listOf(`"0b5c7a52-7d0e-4a52-93b5-5a9f1f0e0a11"`), 100_000,
		},
		{"patterns of keys", anything, under(`{"patternProperties":{` + joined(250, `"^%d[a-z]":{}`) + `}}`), objectOf(`"k%d":1`), most - 2},
		{"patterns of names", linear, under(`{"propertyNames":{"pattern":"^k[0-9]+$"}}`), objectOf(`"k%d":1`), most - 2},
		{"lengths of a text", anything, under(`{"allOf":[` + joined(500, `{"maxLength":5000000}`) + `]}`), func(n int) string { return `{"a":"` + strings.Repeat("é", n) + `"}` }, 2 << 20},
		{"long keys without case", linear, `{"type":"object"}`, func(n int) string { return `{"` + strings.Repeat("ǆ", n) + `":1}` }, 2 << 20},
		{"keys without case", linear, `{"type":"object","properties":{"A":{}}}`, objectOf(`"ſſſſ%d":1`), most - 2},
		{"long numbers", linear, `{"type":"object"}`, listOf(`1.00000000000000011102230246251565404236316680908203125%d`), 1 << 14},
		{"long small numbers", linear, `{"type":"object"}`, listOf(`2.4703282292062327208299439634110865296403656e-%[1]d4`), 31},
		{"halves of small numbers", linear, `{"type":"object"}`, listOf(`2.47032822920623272088284396434110686182529901307162382212792841250337753635104375932649918180817996189e-290`), 1 << 14},
		{"halves of large numbers", linear, `{"type":"object"}`, listOf(`8.98846567431157854072637118658521783990352837629224982994587384015786304099e307`), 1 << 14},
		{"exact halves", linear, `{"type":"object"}`, listOf(`89884656743115785407263711865852178399035283762922498299458738401578630390014269380294779316383439085770229476757191232117160663444732091384233773351768758493024955288275641038122745045194664472037934254227566971152291618451611474082904279666061674137398913102072361584369088590459649940625202092`), 14000},
		{"one number", linear, `{"type":"object"}`, func(n int) string { return `{"a":` + strings.Repeat("9", 200) + "." + strings.Repeat("9", n) + `}` }, 4 << 20},
		{"escapes", linear, `{"type":"object"}`, func(n int) string { return `{"a":"` + strings.Repeat(`\u0001`, n) + `"}` }, 700_000},
		{
			"long keys on the way to a fault", linear, `{"type":"object","additionalProperties":{"$ref":"#/$defs/m"},"$defs":{"m":{"type":"object","additionalProperties":{"$ref":"#/$defs/m"}}}}`,
			nested(`{"`+strings.Repeat("k", 60_000)+`":`, 60, "1", "}"), 1,
		},
		{"many names that a fault may list", linear, under(`{` + many(800) + `,"additionalProperties":false}`), objectOf(`"k%d":1`), most - 2},
	}
}

// part is the part of values and steps that tests are content with.
const part = 16

// judged reads and judges the value of a pair, and returns it and the steps.
func judged(t interface{ Fatalf(string, ...any) }, p pair, parts int) (raw []byte, f *fault, steps int) {
	g, err := newGraph([]byte(p.schema), &patterns{})
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	raw = []byte(p.value(parts))
	v, _, f := readStrict(raw, true)
	if f != nil {
		t.Fatalf("%s: %v", p.name, f)
	}
	f, steps = g.within(maxSteps/part, v, true)
	return raw, f, steps
}

// atMost is far more time than any pair takes: what it finds is work that is not
// counted.
const atMost = 20 * time.Second

// Whatever the schema and the value, judging takes few steps for each byte of the
// value, or stops where its steps have run out.
func TestCost(t *testing.T) {
	for _, p := range costly() {
		start := time.Now()
		raw, f, steps := judged(t, p, max(p.parts/part, 1))
		if d := time.Since(start); d > atMost {
			t.Errorf("%s: took %v", p.name, d)
		}
		over := f != nil && f.problem == tooMuch
		few := steps <= 8*len(raw)+10_000
		switch {
		case steps > maxSteps/part:
			t.Errorf("%s: %d steps", p.name, steps)
		case p.bounds == linear && (over || !few):
			t.Errorf("%s: %d steps for %d bytes, %v", p.name, steps, len(raw), f)
		case p.bounds == stopped && !over:
			t.Errorf("%s: %d steps for %d bytes, %v", p.name, steps, len(raw), f)
		}
	}
}

// The same as a search: schemas and values put together at random.
func TestCostSearch(t *testing.T) {
	leaf := rapid.SampledFrom([]string{
		`{}`, `{"type":"string","pattern":"^[a-z]+$"}`, `{"pattern":"(a|aa)*b"}`, `{"enum":[1,"a",[],{}]}`, `{"uniqueItems":true}`,
		`{"properties":{` + joined(500, `"p%d":{}`) + `}}`, `{"required":[` + joined(500, `"p%d"`) + `]}`, `{"items":{"$ref":"#"}}`,
		`{"dependentRequired":{"p1":[` + joined(500, `"p%d"`) + `]}}`, `{"maxLength":9}`, `{"unevaluatedProperties":{"type":"integer"}}`,
		`{"patternProperties":{` + joined(100, `"^p%d[0-9]*$":{}`) + `}}`,
	})
	wrap := rapid.SampledFrom([]string{
		`{"items":%s,"contains":{"type":"object"}}`, `{"additionalProperties":%s}`, `{"allOf":[%s,%s]}`, `{"anyOf":[%s,{"items":%s},true]}`,
		`{"oneOf":[%s,{"type":"null"}]}`, `{"not":{"not":%s}}`, `{"propertyNames":%s}`, `{"if":%s,"then":%s,"unevaluatedItems":true}`,
	})
	value := rapid.SampledFrom([]string{
		`{}`, `"a"`, `1`, `{"P1":[1]}`, `{"p1":{},"q":[]}`, `[[],[]]`, `[1,2,3]`, `"aaaaaaaaaaaaaaaaaaaa"`, `{` + joined(200, `"p%d":1`) + `}`,
	})
	ends := map[bool]int{}
	enough.Check(t, func(rt *rapid.T) {
		schema := leaf.Draw(rt, "leaf")
		for range rapid.IntRange(0, 4).Draw(rt, "wraps") {
			schema = strings.ReplaceAll(wrap.Draw(rt, "wrap"), "%s", schema)
		}
		if len(schema) > maxSchema {
			return
		}
		values := listOf(value.Draw(rt, "item"))
		if rapid.Bool().Draw(rt, "object") {
			values = objectOf(`"k%d":` + value.Draw(rt, "member"))
		}
		start := time.Now()
		_, f, steps := judged(rt, pair{name: schema, schema: under(schema), value: values}, rapid.IntRange(1, 1000).Draw(rt, "n"))
		if d := time.Since(start); steps > maxSteps/part || d > atMost {
			rt.Fatalf("%d steps, %v", steps, d)
		}
		ends[f != nil && f.problem == tooMuch]++
	}, func() string {
		if ends[false] == 0 {
			return "nothing was judged to its end"
		}
		return ""
	})
}

// What a pair takes where the value is as large as it may be.
func BenchmarkCost(b *testing.B) {
	for _, p := range costly() {
		b.Run(p.name, func(b *testing.B) {
			s, err := NewSchemas([]Definition{{Name: "t", InputSchema: json.RawMessage(p.schema)}})
			if err != nil {
				b.Fatal(err)
			}
			raw := []byte(p.value(p.parts))
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_, err = s[0].Arguments(raw)
			}
			if err == nil {
				b.ReportMetric(1, "accepted")
			}
		})
	}
}
