package additive

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

// quick judges two contents through windows of a size.
func quick(old, new string, window int, ex []exception) (verdict, error) {
	m := newMeter(context.Background(), int64(len(old)+len(new)))
	p := &pair{
		m:          m,
		old:        &source{r: strings.NewReader(old), size: int64(len(old)), m: m, short: io.ErrUnexpectedEOF, most: window},
		new:        &source{r: strings.NewReader(new), size: int64(len(new)), m: m, short: io.ErrUnexpectedEOF, most: window},
		exceptions: ex,
	}
	return p.judge(), m.err
}

// Scalars by value, each in several spellings.
var spellings = [][]string{
	{"1", "1.0", "1e0", "10e-1", "0.1E+1"},
	{"2", "0.2e1", "2.00"},
	{"0", "-0", "0.0", "0e5"},
	{"9007199254740993", "9007199254740993.0", "900719925474099.3e1"},
	{"9007199254740992"},
	{"-1", "-1.0"},
	{"12"},
	{"1250"},
	{"true"},
	{"false"},
	{"null"},
	{`""`},
	{`"a"`, `"\u0061"`},
	{`"b"`},
	{`"1"`},
	{`"é"`, `"\u00e9"`, `"\u00E9"`},
	{`"😀"`, `"\ud83d\ude00"`},
	{`"\ud83d"`, `"\uD83D"`},
	{`"\ude00"`},
	{`"\ude00\ud83d"`},
	{`"` + strings.Repeat("long ", 8) + `"`},
	{`"` + strings.Repeat("long ", 8) + `!"`},
	{`"a\"\\\/\n"`, `"\u0061\u0022\u005c/\u000a"`},
	{`"�"`, `"\ufffd"`},
}

// node is a value that can be changed and written.
type node struct {
	scalar int // in spellings, when it is one
	list   []*node
	keys   []int // in keyNames; as long as list
	kind   byte  // 's', '[', '{'
}

var keyNames = [][]string{
	{`"a"`, `"\u0061"`}, {`"b"`}, {`"id"`}, {`""`}, {`"é"`, `"\u00e9"`}, {`"\ud800"`}, {`"` + strings.Repeat("k", 40) + `"`}, {`"a/b"`, `"a\/b"`}, {`"n"`},
}

func drawNode(t *rapid.T, depth int) *node {
	n := &node{kind: 's', scalar: rapid.IntRange(0, len(spellings)-1).Draw(t, "scalar")}
	if depth == 0 {
		return n
	}
	if n.kind = rapid.SampledFrom([]byte("s[{[{")).Draw(t, "kind"); n.kind == 's' {
		return n
	}
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		n.insert(t, len(n.list), drawNode(t, depth-1))
	}
	return n
}

// insert puts an element, or a member whose key is not there yet.
func (n *node) insert(t *rapid.T, at int, e *node) {
	if n.kind == '{' {
		k := rapid.IntRange(0, len(keyNames)-1).Draw(t, "key")
		if slices.Contains(n.keys, k) {
			return
		}
		n.keys = slices.Insert(n.keys, at, k)
	}
	n.list = slices.Insert(n.list, at, e)
}

func (n *node) clone() *node {
	c := *n
	c.keys = slices.Clone(n.keys)
	c.list = nil
	for _, e := range n.list {
		c.list = append(c.list, e.clone())
	}
	return &c
}

func (n *node) all() []*node {
	out := []*node{n}
	for _, e := range n.list {
		out = append(out, e.all()...)
	}
	return out
}

// change does one thing that may or may not lose something.
func (n *node) change(t *rapid.T) {
	x := rapid.SampledFrom(n.all()).Draw(t, "where")
	if x.kind == 's' {
		if rapid.IntRange(0, 3).Draw(t, "another") == 0 {
			x.scalar = rapid.IntRange(0, len(spellings)-1).Draw(t, "scalar")
		}
		return
	}
	at := rapid.IntRange(0, len(x.list)).Draw(t, "at")
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what < 7 || len(x.list) == 0:
		x.insert(t, at, drawNode(t, 1))
	case what == 7 && x.kind == '{' && at < len(x.list):
		x.keys[0], x.keys[at] = x.keys[at], x.keys[0]
		x.list[0], x.list[at] = x.list[at], x.list[0]
	case what == 8 && at < len(x.list):
		x.list = slices.Delete(x.list, at, at+1)
		if x.kind == '{' {
			x.keys = slices.Delete(x.keys, at, at+1)
		}
	case at < len(x.list):
		x.list[at] = drawNode(t, 1)
	}
}

// write draws how the value is written.
func (n *node) write(t *rapid.T, line bool, b *strings.Builder) {
	gap := func() {
		spaces := []string{"", "", "", " ", "  ", "\t"}
		if !line {
			spaces = append(spaces, "\n", "\r\n  ")
		}
		b.WriteString(rapid.SampledFrom(spaces).Draw(t, "gap"))
	}
	if n.kind == 's' {
		b.WriteString(rapid.SampledFrom(spellings[n.scalar]).Draw(t, "spelling"))
		return
	}
	b.WriteByte(n.kind)
	for i, e := range n.list {
		if i > 0 {
			b.WriteByte(',')
		}
		gap()
		if n.kind == '{' {
			b.WriteString(rapid.SampledFrom(keyNames[n.keys[i]]).Draw(t, "spelling"))
			gap()
			b.WriteByte(':')
			gap()
		}
		e.write(t, line, b)
		gap()
	}
	b.WriteByte(map[byte]byte{'[': ']', '{': '}'}[n.kind])
}

// drawJSON returns two documents, or two files of records, of which the second
// comes from the first.
func drawJSON(t *rapid.T) (old, new string) {
	records := rapid.Bool().Draw(t, "records")
	root := &node{kind: '['}
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		e := drawNode(t, 3)
		if records && e.kind != '{' {
			e = &node{kind: '{'}
		}
		root.list = append(root.list, e)
	}
	if !records && rapid.Bool().Draw(t, "object") {
		root = &node{kind: '{', list: root.list}
		for i := range root.list {
			root.keys = append(root.keys, i)
		}
	}
	out := func(n *node) string {
		var b strings.Builder
		if rapid.IntRange(0, 9).Draw(t, "mark") == 0 {
			b.WriteString("\uFEFF")
		}
		if !records {
			n.write(t, false, &b)
			return b.String()
		}
		for _, e := range n.list {
			e.write(t, true, &b)
			b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", " \n"}).Draw(t, "end"))
		}
		return b.String()
	}
	old = out(root)
	changed := root.clone()
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		changed.change(t)
	}
	return old, out(changed)
}

// drawText returns texts of few different lines.
func drawText(t *rapid.T) (old, new string) {
	line := rapid.SampledFrom([]string{"a", "b", "ab", "", "12", "1250", "é", "#!x", "[", strings.Repeat("x", 30), strings.Repeat("x", 30) + "y", "a\r", "\x00"})
	end := rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n", "\r\n", "\r", ""})
	draw := func(lines []string, label string) string {
		var b strings.Builder
		if rapid.IntRange(0, 9).Draw(t, "mark") == 0 {
			b.WriteString("\uFEFF")
		}
		for _, l := range lines {
			b.WriteString(l + end.Draw(t, label))
		}
		return b.String()
	}
	lines := rapid.SliceOfN(line, 0, 6).Draw(t, "lines")
	changed := slices.Clone(lines)
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		at := rapid.IntRange(0, len(changed)).Draw(t, "at")
		if at < len(changed) && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			changed = slices.Delete(changed, at, at+1)
		} else {
			changed = slices.Insert(changed, at, line.Draw(t, "line"))
		}
	}
	old, new = draw(lines, "end"), draw(changed, "end")
	if rapid.IntRange(0, 2).Draw(t, "append") == 0 {
		new = old + new
	}
	return old, new
}

// damage changes bytes.
func damage(t *rapid.T, s string) string {
	b := []byte(s)
	for range rapid.IntRange(0, 2).Draw(t, "damage") {
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		c := rapid.SampledFrom([]byte("[]{}\",:\\u0d1e-+. \n\rtn\x00\xff\xed\xa0\xc3")).Draw(t, "byte")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			b = slices.Insert(b, at, c)
		case 1:
			b = slices.Delete(b, at, min(at+1, len(b)))
		default:
			if at < len(b) {
				b[at] = c
			}
		}
	}
	return string(b)
}

func compareWithSlow(t *rapid.T, old, new string, ex []exception) {
	var volatile [][]string
	for _, e := range ex {
		volatile = append(volatile, e.at)
	}
	want := slowAdditive(old, new, volatile)
	for _, window := range []int{1, 7, 40, 0} {
		v, err := quick(old, new, window, ex)
		if err != nil {
			t.Fatalf("window %d: %q -> %q: %v", window, old, new, err)
		}
		if (v.why == "") != want {
			t.Fatalf("window %d: additive is %v: %q -> %q\nverdict %+v", window, want, old, new, v)
		}
	}
}

func TestJSONIsJudgedAsSlowly(t *testing.T) {
	seen := map[string]int{}
	enough.Check(t, func(t *rapid.T) {
		old, new := drawJSON(t)
		if rapid.IntRange(0, 3).Draw(t, "broken") == 0 {
			old, new = damage(t, old), damage(t, new)
		}
		compareWithSlow(t, old, new, nil)
		seen[fmt.Sprint("additive ", slowAdditive(old, new, nil))]++
	}, func() string {
		for _, k := range []string{"additive true", "additive false"} {
			if seen[k] == 0 {
				return "nothing was " + k
			}
		}
		return ""
	})
}

func TestTextIsJudgedAsSlowly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawText(t)
		compareWithSlow(t, damage(t, old), damage(t, new), nil)
	})
}

func TestVolatileIsJudgedAsSlowly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawJSON(t)
		segment := rapid.SampledFrom([]string{"*", "*", "0", "1", "2", "a", "b", "id", "", "n"})
		var ex []exception
		for _, at := range rapid.SliceOfN(rapid.SliceOfN(segment, 1, 3), 1, 3).Draw(t, "volatile") {
			ex = append(ex, exception{at: at, volatile: true})
		}
		compareWithSlow(t, old, new, ex)
	})
}

// TestReflexive: whatever a content is, itself loses nothing, and neither does
// what the judge calls additive in two steps.
func TestReflexive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawJSON(t)
		if !utf8.ValidString(old) {
			t.Skip()
		}
		if v, err := quick(old, old, 16, nil); err != nil || v.why != "" {
			t.Fatalf("%q: %+v, %v", old, v, err)
		}
		if v, err := quick(old, new, 16, nil); err != nil || v.why != "" {
			return
		}
		if slowAdditive(old, new, nil) && !slowAdditive(new, new, nil) {
			t.Fatalf("%q -> %q", old, new)
		}
	})
}
