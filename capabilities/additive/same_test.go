package additive

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var sameCases = []struct {
	name, old, new string
	volatile       string
	want           bool
}{
	{"equal", `[1]`, `[1]`, "", true},
	{"both empty", "", "", "", true},
	{"text", "a\n", "a\nb\n", "/a", false},
	{"added", `{"a":1}`, `{"a":1,"b":2}`, "/a", false},
	{"volatile", `{"a":1, "b":[{"t":1}]}`, `{"a":2000, "b":[{"t":1}]}`, "/a", true},
	{"volatile below", `{"a":1, "b":[{"t":"x"}]}`, `{"a":1, "b":[{"t":"\u0079"}]}`, "/b/*/t", true},
	{"volatile and another", `{"a":1,"b":1}`, `{"a":2,"b":2}`, "/a", false},
	{"not approved", `{"a":1}`, `{"a":2}`, "", false},
	{"type", `{"a":1}`, `{"a":"1"}`, "/a", false},
	{"volatile and an element", `{"a":1,"b":[]}`, `{"a":2,"b":[1]}`, "/a", false},
	{"volatile and an element less", `{"a":1,"b":[1,2]}`, `{"a":2,"b":[1]}`, "/a", false},
	{"volatile and a key", `{"a":1}`, `{"a":2,"b":1}`, "/a", false},
	{"volatile and a key less", `{"a":1,"b":1}`, `{"a":2}`, "/a", false},
	{"volatile and keys in another order", `{"a":1,"b":1}`, `{"b":1,"a":2}`, "/a", false},
	{"volatile and white space", `{"a":1,"b":1}`, `{"a":2, "b":1}`, "/a", false},
	{"volatile and white space at the end", "{\"a\":1}", "{\"a\":2}\n", "/a", false},
	{"volatile and a number written otherwise", `{"a":1,"b":1}`, `{"a":2,"b":1.0}`, "/a", false},
	{"volatile and a key written otherwise", `{"a":1,"b":1}`, `{"a":2,"\u0062":1}`, "/a", false},
	{"volatile and a mark", `{"a":1}`, "\uFEFF" + `{"a":2}`, "/a", false},
	{"behind a mark", "\uFEFF" + `{"a":1}`, "\uFEFF" + `{"a":2}`, "/a", true},
	{"scalar for container", `{"a":1}`, `{"a":[]}`, "/a", false},
	{"array for object", `{"a":[]}`, `{"a":{}}`, "/a", false},
	{"records", "{\"t\":1}\n{\"t\":2}\n", "{\"t\":1}\n{\"t\":22}\n", "/*/t", true},
	{"record more", "{\"t\":1}\n{\"t\":2}\n", "{\"t\":1}\n{\"t\":22}\n{\"t\":3}\n", "/*/t", false},
	{"no longer JSON", `{"a":1}`, `{"a":1]`, "/a", false},
	{"duplicate keys", `{"a":1,"a":2}`, `{"a":1,"a":3}`, "/a", false},
	{"no scalar", `{"a":[1]}`, `{"a":[2]}`, "/a", false},
	{"whole", `{"a":{"b":"x"}}`, `{"a":{"b":"y"}}`, "/a/b", true},
}

func TestSame(t *testing.T) {
	for _, c := range sameCases {
		t.Run(c.name, func(t *testing.T) {
			var r Rules
			if c.volatile != "" {
				r.Volatile = pointers(t, "/data/f#"+c.volatile)
			}
			if got := same(t, r, c.old, c.new); got != c.want {
				t.Errorf("%q, %q: got %v", c.old, c.new, got)
			}
			if got := same(t, Rules{VolatileFiles: []string{"/data/f"}}, c.old, c.new); !got {
				t.Error("a file that may change at will")
			}
		})
	}
}

type fataler interface{ Fatal(args ...any) }

func same(t fataler, r Rules, old, new string) bool {
	ok, err := r.Same(bg(), "/data/f", content{strings.NewReader(old)}, content{strings.NewReader(new)}, int64(len(old)), int64(len(new)))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestSameIsExact: a document whose scalars change is the same exactly when
// each of these is at a volatile pointer and of its old type.
func TestSameIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const template = `{"a": %a, "b":[ %b,{"c":%c }],"d":"%d"}`
		values := rapid.SampledFrom([]string{"1", "20", "true", `"x"`, `"\u00e9"`, "null"})
		types := func(s string) string { return kindOf(s[0]).String() }
		old, new, want := template, template, true
		volatile := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/b/0", "/b/1/c"}), 0, 3, rapid.ID[string]).Draw(t, "volatile")
		for _, c := range [][2]string{{"%a", "/a"}, {"%b", "/b/0"}, {"%c", "/b/1/c"}} {
			mark, at := c[0], c[1]
			x, y := values.Draw(t, "old"), values.Draw(t, "new")
			old, new = strings.Replace(old, mark, x, 1), strings.Replace(new, mark, y, 1)
			listed := false
			for _, v := range volatile {
				listed = listed || v == at
			}
			want = want && (x == y || listed && types(x) == types(y))
		}
		var ex []exception
		for _, v := range volatile {
			ex = append(ex, exception{at: strings.Split(v[1:], "/"), volatile: true})
		}
		for _, window := range []int{1, 9, 0} {
			m := newMeter(bg(), int64(len(old)+len(new)))
			p := &pair{
				m: m, exceptions: ex,
				old: &source{r: strings.NewReader(old), size: int64(len(old)), m: m, short: io.ErrUnexpectedEOF, most: window},
				new: &source{r: strings.NewReader(new), size: int64(len(new)), m: m, short: io.ErrUnexpectedEOF, most: window},
			}
			if got := p.equal(); got != want || m.err != nil {
				t.Fatalf("%s, %s, volatile %q: got %v, %v", old, new, volatile, got, m.err)
			}
		}
	})
}
