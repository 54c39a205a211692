package tool

import (
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"strings"
	"testing"
)

func TestPatternWidth(t *testing.T) {
	for text, narrow := range map[string]bool{
		`^[a-z]+$`: true, `^[0-9a-f]{8}-[0-9a-f]{4}$`: true, `^[a-z][a-z0-9-]{0,62}$`: true, `^(a|b|c)$`: true, `^https?://[^/]+/`: true, `^(?i)k$`: true, `^(a|ab)*$`: true,
		`a`: false, `^(a|b)*a(a|b)$`: false, `^.*x`: false, `(^a|b)c`: false,
	} {
		p, err := (&patterns{}).get(text)
		if err != nil {
			t.Fatal(err)
		}
		if (p.width < p.states) != narrow {
			t.Errorf("%s: %d of %d states", text, p.width, p.states)
		}
		if p.width < 1 || p.cost(math.MaxInt) != math.MaxInt || p.cost(100) < 100 {
			t.Errorf("%s: width %d, cost %d", text, p.width, p.cost(100))
		}
	}
}

func TestPatternsTooLarge(t *testing.T) {
	for _, schema := range []string{
		`{"pattern":"` + strings.Repeat("x{1000}", 70) + `"}`,
		`{"anyOf":[` + joined(70, `{"pattern":"x{1000}|%d"}`) + `]}`,
	} {
		if _, err := newGraph([]byte(schema), &patterns{}); err == nil {
			t.Errorf("%.60s… was compiled", schema)
		}
	}
	if _, err := newGraph([]byte(`{"anyOf":[`+joined(50, `{"pattern":"(?:x){1000}|%d"}`)+`]}`), &patterns{}); err != nil {
		t.Error(err)
	}
}

// bomb is a description of tools whose schemas have one pattern each, of about
// a thousand states for each repetition.
func bomb(tools, repetitions int, distinct bool) []byte {
	var list []string
	for i := range tools {
		tail := ""
		if distinct {
			tail = fmt.Sprint(i)
		}
		schema := `{"type":"object","properties":{"q":{"pattern":"^` + strings.Repeat(`(?:a?){500}`, repetitions) + tail + `$"}}}`
		list = append(list, fmt.Sprintf(`{"name":"t%d","inputSchema":%s,"outputSchema":%s}`, i, schema, schema))
	}
	return []byte(`{"tools":[` + strings.Join(list, ",") + `]}`)
}

// allocated returns how many bytes a function allocates, those it frees included.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The patterns of all tools of a package have one budget, and what is over it is
// refused before it is compiled.
func TestPatternsOfAPackage(t *testing.T) {
	const most = 50 << 20
	for name, in := range map[string][]byte{
		"one that is too large": bomb(128, 70, false),
		"many that differ":      bomb(128, 20, true),
		"many that are large":   bomb(128, 60, true),
	} {
		var err error
		if n := allocated(func() { _, err = ParseDescription(in) }); n > most {
			t.Errorf("%s: %d bytes", name, n)
		}
		if _, ok := errors.AsType[*ManifestError](err); !ok || !strings.Contains(err.Error(), errPatterns.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
	definitions, err := ParseDescription(bomb(128, 20, false))
	if err != nil {
		t.Fatal(err)
	}
	var all []*Schemas
	if n := allocated(func() { all, err = NewSchemas(definitions) }); err != nil || n > most {
		t.Errorf("%d bytes, %v", n, err)
	}
	q := func(g *graph) *pattern { return g.root.properties["q"].pattern }
	for _, s := range all {
		if q(s.input) != q(all[0].input) || q(s.output) != q(all[0].input) {
			t.Fatal("an equal pattern was compiled again")
		}
	}
	over := []Definition{{Name: "a", InputSchema: []byte(`{"pattern":"(?:a?){1000}"}`)}}
	for i := range 70 {
		over = append(over, Definition{Name: "b", InputSchema: fmt.Appendf(nil, `{"pattern":"x{1000}|%d"}`, i)})
	}
	if all, err := NewSchemas(over); !errors.Is(err, errPatterns) || all != nil {
		t.Errorf("%d compiled, %v", len(all), err)
	}
}
