package tool

import (
	"math"
	"strings"
	"testing"
)

func TestPatternWidth(t *testing.T) {
	for text, narrow := range map[string]bool{
		`^[a-z]+$`: true, `^[0-9a-f]{8}-[0-9a-f]{4}$`: true, `^[a-z][a-z0-9-]{0,62}$`: true, `^(a|b|c)$`: true, `^https?://[^/]+/`: true, `^(?i)k$`: true, `^(a|ab)*$`: true,
		`a`: false, `^(a|b)*a(a|b)$`: false, `^.*x`: false, `(^a|b)c`: false,
	} {
		p, err := newPattern(text, maxStates)
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
		`{"anyOf":[` + joined(70, `{"pattern":"x{1000}"}`) + `]}`,
	} {
		if _, err := newGraph([]byte(schema)); err == nil {
			t.Errorf("%.60s… was compiled", schema)
		}
	}
	if _, err := newGraph([]byte(`{"anyOf":[` + joined(50, `{"pattern":"x{1000}"}`) + `]}`)); err != nil {
		t.Error(err)
	}
}
