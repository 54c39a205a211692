package tool

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// solid reports whether a rune is none of WhiteSpace and LineTerminator of
// ECMA-262.
func solid(r rune) bool {
	return !strings.ContainsRune("\t\n\v\f\r\ufeff\u2028\u2029", r) && !unicode.Is(unicode.Zs, r)
}

func TestFromECMA(t *testing.T) {
	for text, takes := range map[string]func(r rune) bool{
		`^\s$`:      func(r rune) bool { return !solid(r) },
		`^\S$`:      solid,
		`^[\s]$`:    func(r rune) bool { return !solid(r) },
		`^[^\s]$`:   solid,
		`^[\S]$`:    solid,
		`^[^\S]$`:   func(r rune) bool { return !solid(r) },
		`^[\s\S]$`:  func(rune) bool { return true },
		`^[\s-x]$`:  func(r rune) bool { return !solid(r) || r == '-' || r == 'x' },
		`^[\S-\t]$`: func(r rune) bool { return solid(r) || r == '\t' },
		`^[x\s-]$`:  func(r rune) bool { return !solid(r) || r == '-' || r == 'x' },
		`^.$`:       func(r rune) bool { return !strings.ContainsRune("\n\r\u2028\u2029", r) },
		`^\.$`:      func(r rune) bool { return r == '.' },
		`^[.]$`:     func(r rune) bool { return r == '.' },
		`^\\$`:      func(r rune) bool { return r == '\\' },
		`^[\]\[.]$`: func(r rune) bool { return strings.ContainsRune("].[", r) },
	} {
		p, err := (&patterns{}).get(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for r := rune(0); r <= 0xffff+1; r++ {
			if (r < 0xd800 || r > 0xdfff) && p.MatchString(string(r)) != takes(r) {
				t.Errorf("%s: %U", text, r)
			}
		}
	}
}

func TestFromECMARefused(t *testing.T) {
	for _, text := range []string{
		`[[:alpha:]]`, `[^[:space:]x]`, `[]a]`, `[^]`, `(?s).`, `(?s:.)`, `(?im)^a`, `\Aa`, `a\z`, `\Q.\E`, `\C`, `\1`, `(a)\12`, strings.Repeat("a", maxPattern+1),
	} {
		_, err := (&patterns{}).get(text)
		if f, ok := errors.AsType[*flaw](err); !ok || f.mend == "" {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, text := range []string{`[a-\s]`, `[a-\S]`, `\`, `[`, `(?<=a)b`, `[[:`} {
		if _, err := (&patterns{}).get(text); err == nil {
			t.Errorf("%s was compiled", text)
		}
	}
	for _, text := range []string{`(?:a)`, `(?i)k`, `(?<name>a)`, `(?P<name>a)`, `[[:]`, `\p{L}`, `\x{e9}`, `\x41`} {
		if _, err := (&patterns{}).get(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is translated matches what it matched, but for what differs.
func TestFromECMAKeeps(t *testing.T) {
	piece := rapid.SampledFrom([]string{`a`, `\s`, `\S`, `.`, `[\s_]`, `[^\Sb]`, `\.`, `(a|\s)`, `.*`, `\s{2,3}`, `[a.]?`, `^`, `$`, `\b`})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pattern"), "")
		before, err := regexp.Compile(text)
		if err != nil {
			t.Skip(err)
		}
		after, err := (&patterns{}).get(text)
		if err != nil {
			t.Fatal(err)
		}
		in := rapid.StringMatching(`[ab._ \t-]{0,8}`).Draw(t, "in")
		if before.MatchString(in) != after.MatchString(in) {
			t.Fatalf("%s: %q", text, in)
		}
	})
}

// What is counted before a pattern is compiled is no less than what it has then.
func TestStatesAreCounted(t *testing.T) {
	piece := rapid.SampledFrom([]string{`a`, `abc`, `(?i)kx`, `\pL`, `[^a]`, `.`, `(a|bc|)`, `(?:a?)`, `(?:|a)`, `(?:a*b*)`, `^`, `\b`, `()`})
	repeat := rapid.SampledFrom([]string{``, `*`, `+`, `?`, `*?`, `{0}`, `{1}`, `{0,1}`, `{2}`, `{3,}`, `{0,4}`, `{2,9}`, `{0,}`, `{1,}`})
	var draw func(t *rapid.T, levels int) string
	draw = func(t *rapid.T, levels int) string {
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "pieces") {
			one := piece.Draw(t, "piece")
			if levels > 0 && rapid.Bool().Draw(t, "nest") {
				one = draw(t, levels-1)
			}
			b.WriteString("(?:" + one + ")" + repeat.Draw(t, "repeat"))
		}
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		text := draw(t, 3)
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Skip(err)
		}
		counted := statesOf(tree)
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if counted < len(program.Inst) {
			t.Fatalf("%s: %d counted, %d compiled", text, counted, len(program.Inst))
		}
	})
}
