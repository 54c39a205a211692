package strictyaml

import "testing"

func TestHiddenIn(t *testing.T) {
	for _, s := range []string{
		"", "plain", "two\nlines", "tab\there", "dos\r\nlines", "Ünïcödé", "日本語", "مرحبا", "नमस्ते", "é",
		"👍🏽", "👨‍👩‍👧", "❤️", "می\u200cخواهم", "a…b", "“quoted”",
	} {
		if h := HiddenIn(s); h != "" {
			t.Errorf("%q holds %s", s, h)
		}
	}
	for _, s := range []string{
		"a\x00b", "a\x1b[31mb", "a\u009bb", "a\x7fb", "a\x08b", "a\rb", "a\r",
		"a\u202eb", "a\u2066b", "a\u200eb", "a\u061cb",
		"a\u200bb", "a\u2060b", "a\ufeffb", "a\u00adb", "a\u2028b", "a\u2029b", "a\u3164b", "a\u115fb",
		"a\U000e0041b", "a\U000e0100b", "a\ufe0f\ufe0fb", "a\ufffeb", "a\U0001ffffb", "a\xffb",
	} {
		if HiddenIn(s) == "" {
			t.Errorf("%q holds nothing", s)
		}
	}
}

func TestErrorIsOneLine(t *testing.T) {
	e := &Error{File: "a\nb", Line: 1, Column: 2, Field: "f\x1b[31m", Problem: "p\u202e", Mend: "m\r\n"}
	if got := e.Error(); got != "a b:1:2: f [31m: p ; m  " {
		t.Errorf("%q", got)
	}
}

func TestFold(t *testing.T) {
	for _, p := range [][2]string{{"Name", "name"}, {"ſ", "s"}, {"K", "k"}, {"Σ", "ς"}} {
		if Fold(p[0]) != Fold(p[1]) {
			t.Errorf("%q and %q differ", p[0], p[1])
		}
	}
	if Fold("a") == Fold("b") {
		t.Error("a is b")
	}
}
