package additive

import "testing"

// FuzzJudge: a judgement ends with a verdict or an error, never both and never
// with a panic; it is the slow one's; and every content is additive to itself
// but for what has no rule.
func FuzzJudge(f *testing.F) {
	for _, c := range contentCases {
		f.Add(c.old, c.new, 0)
		f.Add(c.old, c.new, 7)
	}
	f.Fuzz(func(t *testing.T, old, new string, window int) {
		window = min(max(window, 0), 1<<16)
		v, err := quick(old, new, window, nil)
		if (err != nil) == (v.verb != 0) {
			t.Fatalf("%+v and %v", v, err)
		}
		if len(old)+len(new) > 1<<10 || err != nil || exponents(old+new) {
			return
		}
		if want := slowAdditive(old, new, nil); want != (v.why == "") {
			t.Fatalf("%q -> %q: slowly %v, got %+v", old, new, want, v)
		}
		if v.why != "" && v.pointer != printable(v.pointer) {
			t.Fatalf("pointer %q", v.pointer)
		}
	})
}

// exponents reports whether there may be a number that is slow to expand.
func exponents(s string) bool {
	digits := 0
	for _, b := range []byte(s) {
		if b >= '0' && b <= '9' {
			if digits++; digits > 3 {
				return true
			}
		} else {
			digits = 0
		}
	}
	return false
}

// FuzzSame: contents are the same to themselves, and what is the same loses
// nothing.
func FuzzSame(f *testing.F) {
	for _, c := range sameCases {
		f.Add(c.old, c.new, c.volatile)
	}
	f.Fuzz(func(t *testing.T, old, new, at string) {
		var r Rules
		if p, err := ParsePointer("/data/f#" + at); err == nil {
			r.Volatile = []Pointer{p}
		}
		if !same(t, r, old, old) {
			t.Fatalf("%q is not the same as itself", old)
		}
		if !same(t, r, old, new) || old == new {
			return
		}
		if l := judged(t, files{"f": text1(old)}, files{"f": text1(new)}, r).Loss(); l != nil {
			t.Fatalf("%q, %q: the same, and %+v", old, new, l)
		}
		if same(t, Rules{}, old, new) {
			t.Fatalf("%q, %q: the same without rules", old, new)
		}
	})
}
