package tool

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// Texts have one fold where they differ by case only.
func TestFoldOf(t *testing.T) {
	letter := rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("kK\u212asSſßẞǆǅǄåÅ\u212bσςΣ")))
	text := rapid.Map(rapid.SliceOfN(letter, 0, 3), func(r []rune) string { return string(r) })
	rapid.Check(t, func(rt *rapid.T) {
		a := text.Draw(rt, "a")
		for _, b := range []string{text.Draw(rt, "b"), strings.ToUpper(a), strings.ToLower(a), strictyaml.Fold(a)} {
			same := strictyaml.Fold(a) == strictyaml.Fold(b)
			if (foldOf(a) == foldOf(b)) != same || strings.EqualFold(a, b) != same {
				rt.Fatalf("%q and %q: the same %v", a, b, same)
			}
		}
	})
}

// An object finds its keys, however many there are.
func TestObjectKeys(t *testing.T) {
	for _, n := range []int{0, 1, unindexed - 1, unindexed, unindexed + 1, 100} {
		for _, folded := range []bool{false, true} {
			v, _, f := readStrict([]byte(`{`+joined(n, `"k%[1]d":%[1]d`)+`}`), folded)
			if f != nil {
				t.Fatal(f)
			}
			o := v.(*objectValue)
			for i := range n {
				if v, ok := o.get(fmt.Sprint("k", i)); !ok || v != int64(i) {
					t.Errorf("%d keys, without case %v: k%d is %v", n, folded, i, v)
				}
			}
			for _, other := range []string{"K0", "k", fmt.Sprint("k", n)} {
				if i := o.index(other); i >= 0 {
					t.Errorf("%d keys, without case %v: %s is at %d", n, folded, other, i)
				}
			}
			// One more, alike or the same.
			for _, other := range []string{"K0", "k0"} {
				_, _, f := readStrict([]byte(`{`+joined(n+1, `"k%d":0`)+`,"`+other+`":1}`), folded)
				if refused := f != nil; refused != (folded || other == "k0") {
					t.Errorf("%d keys, without case %v: %s beside k0: %v", n+1, folded, other, f)
				}
			}
		}
	}
}

func TestLongNumbers(t *testing.T) {
	list := func(n int) []byte { return []byte(`[` + joined(n, `0.12345678901234567890`) + `]`) }
	if _, _, f := readStrict(list(maxLongNumbers), false); f != nil {
		t.Error(f)
	}
	if _, _, f := readStrict(list(maxLongNumbers+1), false); f == nil {
		t.Error("one too many was read")
	}
}

func TestShape(t *testing.T) {
	for s, want := range map[string]struct {
		digits int
		tiny   bool
	}{
		"0": {0, false}, "-0.000e-999": {0, false}, "12.50": {4, false}, "-0.0012": {2, false}, "1e-307": {1, false}, "1e-308": {1, true},
		"0.001e-305": {1, true}, "1000e-309": {4, false}, "1e-99999999999999999999": {1, true}, "1e99999999999999999999": {1, false}, "5e-324": {1, true},
	} {
		if digits, tiny := extent(s); digits != want.digits || tiny != want.tiny {
			t.Errorf("%s: %d digits, tiny %v", s, digits, tiny)
		}
	}
}
