package strictyaml

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// decode reads a document with f and returns the error as a user sees it.
func decode(t *testing.T, doc string, f func(v Value)) string {
	t.Helper()
	n, err := ParseYAML("f", []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	d := NewDecoder("f")
	f(d.Root(n))
	if (d.Err() == nil) == d.Failed() {
		t.Fatalf("%s: failed is %t with %v", doc, d.Failed(), d.Err())
	}
	if d.Err() == nil {
		return ""
	}
	return d.Err().Error()
}

func TestDecode(t *testing.T) {
	var got any
	for _, tt := range []struct {
		doc  string
		read func(v Value)
		want any
	}{
		{"a: x", func(v Value) { got = v.Object("a").Field("a").Text("") }, "x"},
		{"a: x", func(v Value) { got = v.Object("a", "b").Field("b").Text("") }, ""},
		{"a: x\nb: 1", func(v Value) { got = v.Open("a").Field("a").Text("") }, "x"},
		{"a: on", func(v Value) { got = v.Field("a").OneOf("on", "off") }, "on"},
		{"a: true", func(v Value) { got = v.Field("a").Truth() }, true},
		{"a: 0x10", func(v Value) { got = v.Field("a").Count(16) }, uint64(16)},
		{"a: 2d", func(v Value) { got = v.Field("a").Duration(48 * time.Hour) }, 48 * time.Hour},
		{"a: 0", func(v Value) { got = v.Field("a").Duration(0) }, time.Duration(0)},
		{"a: {b: [{c: x}]}", func(v Value) { got = v.Field("a").Field("b").Each("")[0].Field("c").Trail.String() }, "a.b[0].c"},
		{"a: x", func(v Value) { got = len(v.Field("a").Items()) }, 0},
	} {
		if err := decode(t, tt.doc, tt.read); err != "" || got != tt.want {
			t.Errorf("%s: %v, %s, want %v", tt.doc, got, err, tt.want)
		}
	}
	texts := func(v Value) { got = v.Field("a").Texts("", func(s string) bool { return s != "no" }) }
	if err := decode(t, "a: [x, y]", texts); err != "" || !slices.Equal(got.([]string), []string{"x", "y"}) {
		t.Errorf("%v, %s", got, err)
	}
	size := func(v Value) { got, _ = v.Field("a").Size(1 << 20) }
	if err := decode(t, "a: 1MiB", size); err != "" || got != int64(1<<20) {
		t.Errorf("%v, %s", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	field := func(f func(v Value)) func(Value) { return func(v Value) { f(v.Object("a").Field("a")) } }
	yes := func(string) bool { return true }
	no := func(string) bool { return false }
	for _, tt := range []struct {
		doc  string
		read func(v Value)
		want string
	}{
		{"[]", field(func(Value) {}), "f:1:1: is a list, want a mapping; write fields below it"},
		{"colour: x", field(func(Value) {}), "f:1:1: colour: unknown field; remove it; known here: a"},
		{"A: x", field(func(Value) {}), "f:1:1: A: unknown spelling of a; write a"},
		{"nmae: x", func(v Value) { v.Object("name") }, "f:1:1: nmae: unknown field; did you mean name?"},
		{"max-size: x", func(v Value) { v.Open("maxSize") }, "f:1:1: max-size: unknown spelling of maxSize; write maxSize"},
		{"b: x", func(v Value) { v.Required("a") }, "f:1:1: a: is missing; add it"},
		{"a: {b: 1, B: 2}", func(v Value) { v.NoTwins() }, `f:1:11: a: the keys "B" and "b" differ by case only; rename one`},
		{"a: [{b: 1, B: 2}]", func(v Value) { v.NoTwins() }, `f:1:12: a[0]: the keys "B" and "b" differ by case only; rename one`},
		{"a: 1", field(func(v Value) { v.Text("quote it") }), "f:1:4: a: is a number, want text; quote it"},
		{`a: ""`, field(func(v Value) { v.Text("m") }), "f:1:4: a: is empty; m"},
		{"a: x", field(func(v Value) { v.Pattern(no, "m") }), `f:1:4: a: "x" is not allowed; m`},
		{"a: x", field(func(v Value) { v.OneOf("b", "c", "d") }), `f:1:4: a: "x" is not allowed; write b, c or d`},
		{"a: xyz", field(func(v Value) { v.Shown(2, true, "m") }), "f:1:4: a: longer than 2 bytes; shorten it"},
		{`a: "\u202e"`, field(func(v Value) { v.Shown(9, true, "m") }), "f:1:4: a: holds the hidden character U+202E; remove it"},
		{`a: "x\ny"`, field(func(v Value) { v.Shown(9, false, "m") }), "f:1:4: a: has more than one line; m"},
		{"a: yes", field(func(v Value) { v.Truth() }), "f:1:4: a: is text, want true or false; write true or false"},
		{"a: x", field(func(v Value) { v.Texts("m", yes) }), "f:1:4: a: is text, want a list; m"},
		{"a: [x, x]", field(func(v Value) { v.Texts("m", yes) }), `f:1:8: a[1]: "x" is there twice; remove one`},
		{"a: [x]", field(func(v Value) { v.Texts("m", no) }), `f:1:5: a[0]: "x" is not allowed; m`},
		{"a: [1]", field(func(v Value) { v.Size(1) }), "f:1:4: a: is a list, want a size; write bytes as 65536, 64KiB, 64MiB or 1GiB"},
		{"a: 1MB", field(func(v Value) { v.Size(1) }), `f:1:4: a: "1MB" is not a size; write bytes as 65536, 64KiB, 64MiB or 1GiB`},
		{"a: 1KiB", field(func(v Value) { v.Size(1) }), "f:1:4: a: 1KiB is more than 1 bytes; lower it"},
		{"a: -1", field(func(v Value) { v.Count(1) }), "f:1:4: a: -1 is not a whole number; write a whole number, 0 or more"},
		{"a: 2", field(func(v Value) { v.Count(1) }), "f:1:4: a: 2 is more than 1; lower it"},
		{"a: soon", field(func(v Value) { v.Duration(1) }), `f:1:4: a: "soon" is not a duration; write a duration as 5s, 1m30s or 30d`},
		{"a: 2s", field(func(v Value) { v.Duration(time.Second) }), `f:1:4: a: "2s" is more than 1s; lower it`},
		{"a: x", func(v Value) { v.Field("a").Fail("first", ""); v.Fail("second", "") }, "f:1:4: a: first"},
	} {
		if got := decode(t, tt.doc, tt.read); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.doc, got, tt.want)
		}
	}
}

func TestFailCause(t *testing.T) {
	why := errors.New("why")
	n, err := ParseYAML("f", []byte("a: x"))
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder("f")
	d.Root(n).Field("a").FailCause("p", "m", why)
	if e, ok := errors.AsType[*Error](d.Err()); !ok || !errors.Is(d.Err(), why) || e.Field != "a" || e.Line != 1 || e.Column != 4 {
		t.Errorf("%#v", d.Err())
	}
}

// FuzzParse: a node xor an error on one line, and what is read as YAML is read
// again from its own JSON, by both readers.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{"a: [1, x, {b: null}]", `{"a": 1e3, "b": "\u00e9"}`, "a: &x 1", "- - - a", "a: |\n  x\n", "a: 0x1f\nb: .5", "? a\n: b", "a: 'it''s'"} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		for name, parse := range map[string]func(string, []byte) (*Node, error){"YAML": ParseYAML, "JSON": ParseJSON} {
			n, err := parse("f", []byte(doc))
			if (err == nil) == (n == nil) {
				t.Fatalf("%s: %v, %v", name, n, err)
			}
			if err != nil {
				if e, ok := errors.AsType[*Error](err); !ok || e.Problem == "" || strings.ContainsAny(err.Error(), "\n\r\x1b") {
					t.Fatalf("%s: %T %q", name, err, err)
				}
				continue
			}
			again, err := ParseJSON("f", n.JSON(false))
			if err != nil && len(n.JSON(false)) <= MaxDocument {
				t.Fatalf("%s: its own JSON is refused: %v\n%s", name, err, n.JSON(false))
			}
			if err == nil && string(again.JSON(false)) != string(n.JSON(false)) {
				t.Fatalf("%s: %s became %s", name, n.JSON(false), again.JSON(false))
			}
		}
	})
}
