package kv

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzStoreName(f *testing.F) {
	for _, s := range []string{"", "a", "a\x00b", "é", "\xff\x80", "日本"} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		na, nb := StoreName(a), StoreName(b)
		if !utf8.ValidString(na) {
			t.Errorf("%q is no text", na)
		}
		if strings.Compare(a, b) != strings.Compare(na, nb) {
			t.Errorf("%q and %q are not in order", a, b)
		}
		if key, err := KeyOf(na); key != a || err != nil {
			t.Errorf("%q came back as %q, %v", a, key, err)
		}
		if key, err := KeyOf(a); err == nil && utf8.ValidString(a) && StoreName(key) != a {
			t.Errorf("%q was taken for the name of %q", a, key)
		}
	})
}

func TestShow(t *testing.T) {
	for key, want := range map[string]string{
		"plain é":                      "plain é",
		"a\x00b":                       `"a\x00b"`,
		"\xff":                         `"\xff"`,
		`"q"`:                          `"\"q\""`,
		"a\x1b[31m":                    `"a\x1b[31m"`,
		strings.Repeat("x", 257):       strings.Repeat("x", 256) + "…",
		strings.Repeat("é", 150):       strings.Repeat("é", 128) + "…",
		"x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 127) + "…",
	} {
		if got := Show(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOfN(rapid.Byte(), 0, MaxKey).Draw(t, "key"))
		got := Show(key)
		if !utf8.ValidString(got) || len(got) > maxShown+len("…") || strings.IndexFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) >= 0 {
			t.Fatalf("%q is shown as %q", key, got)
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-1", "+1", "01", "-0", "9223372036854775807", "-9223372036854775808", "1 ", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Number(b)
		if (err == nil) != (strconv.FormatInt(n, 10) == string(b)) && string(b) != "0" {
			t.Errorf("%q = %d, %v", b, n, err)
		}
		if err != nil && n != 0 {
			t.Errorf("%q is %d and an error", b, n)
		}
	})
}
