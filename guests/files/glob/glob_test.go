package glob

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The answers in testdata are those of npm's minimatch 10.2.6 with {dot: true}.
func TestAsMinimatch(t *testing.T) {
	text, err := os.ReadFile("testdata/minimatch.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Paths    []string
		Patterns []struct {
			Pattern string
			Matches []string
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Patterns) < 200 {
		t.Fatalf("%d patterns", len(golden.Patterns))
	}
	for _, c := range golden.Patterns {
		p, err := Compile(c.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range golden.Paths {
			if got, want := p.Match(path), slices.Contains(c.Matches, path); got != want {
				t.Errorf("%q, path %q: got %t, want %t", c.Pattern, path, got, want)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	if _, err := Compile(strings.Repeat("a", maxPattern+1)); err == nil {
		t.Error("a pattern that is too long compiles")
	}
	if n := len(expand(strings.Repeat("{a,b}", 40))); n > maxExpansions {
		t.Errorf("%d expansions", n)
	}
	if n := len(expand("{1..999999999}")); n > maxExpansions {
		t.Errorf("%d numbers", n)
	}
}

// What takes other matchers exponential time takes this one little: seconds would
// be ages.
func TestHostilePatterns(t *testing.T) {
	name := strings.Repeat("a", 255)
	for _, pattern := range []string{
		strings.Repeat("a*", 120) + "b", strings.Repeat("*(a|aa)", 20) + "b", strings.Repeat("+(+(+(a|aa)))", 10) + "b",
		strings.Repeat("!(a)", 8) + "b",
	} {
		p, err := Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		p.Match(name)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%.20s…: %s", pattern, took)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"**/*.{js,ts}", "!(a|b)*[!c]", "{1..3}\\", "[[:alpha:]-", "@(a|@(b"} {
		f.Add(s, "a/b.js")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern) > 200 || len(path) > 200 {
			return
		}
		if p, err := Compile(pattern); err == nil {
			p.Match(path)
		}
	})
}
