package term_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/sandboxd/sandboxd/internal/term"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain, naïve, 日本, 🙂":     "plain, naïve, 日本, 🙂",
		"a\nb\tc":                 "a\nb\tc",
		"\x1b[31mred\x1b]0;x\x07": `\x1b[31mred\x1b]0;x\x07`,
		"cr\rback\b":              `cr\x0dback\x08`,
		"c1\u009b":                `c1\x9b`,
		"bidi\u202egpj.exe":       `bidi\u202egpj.exe`,
		"zero\u200bwidth":         `zero\u200bwidth`,
		"tag\U000E0041":           `tag\U000e0041`,
		"bad\xff\xfe":             `bad\xff\xfe`,
		"good\uFFFD":              "good\uFFFD",
	} {
		if got := term.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := term.Line("a\nb\tc"), `a\x0ab\x09c`; got != want {
		t.Errorf("Line: %q, want %q", got, want)
	}
}

func FuzzEscapes(f *testing.F) {
	f.Add("a\x1b[2J\u202e\U000E0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := term.Line(s); strings.IndexFunc(got, unicode.IsControl) >= 0 || strings.ContainsAny(got, "\u202e\u2028") {
			t.Errorf("Line(%q) = %q", s, got)
		}
		s = strings.ToValidUTF8(s, "?")
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		clean := term.JSON(b)
		var back string
		if err := json.Unmarshal(clean, &back); err != nil || back != s {
			t.Errorf("JSON(%q) = %q: %v", b, clean, err)
		}
		if strings.ContainsAny(string(clean), "\u009b\u202e\u200b\x7f") {
			t.Errorf("JSON(%q) = %q: not escaped", b, clean)
		}
	})
}
