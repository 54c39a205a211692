package additive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// made is a content that is computed: nothing of it is held. It is head, then
// n times part, then tail.
type made struct {
	head string
	n    int
	part func(i int) string // all of one length
	tail string
	peak *peak
}

func (m made) size() int64 {
	if m.n == 0 {
		return int64(len(m.head) + len(m.tail))
	}
	return int64(len(m.head)+len(m.tail)) + int64(m.n)*int64(len(m.part(0)))
}

func (m made) ReadAt(p []byte, off int64) (int, error) {
	m.peak.look()
	done := 0
	for done < len(p) {
		b := m.at(off + int64(done))
		if len(b) == 0 {
			return done, io.EOF
		}
		done += copy(p[done:], b)
	}
	return done, nil
}

func (m made) at(off int64) string {
	if off < int64(len(m.head)) {
		return m.head[off:]
	}
	off -= int64(len(m.head))
	if m.n > 0 {
		size := int64(len(m.part(0)))
		if i := off / size; i < int64(m.n) {
			return m.part(int(i))[off%size:]
		}
		off -= size * int64(m.n)
	}
	return m.tail[min(off, int64(len(m.tail))):]
}

// peak is the most memory that was seen in use, above what was at first.
type peak struct {
	looks       int
	first, most uint64
}

func (p *peak) look() {
	if p == nil {
		return
	}
	if p.looks++; p.looks%64 != 1 {
		return
	}
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	if p.first == 0 {
		p.first = s.HeapAlloc
	}
	p.most = max(p.most, s.HeapAlloc-min(p.first, s.HeapAlloc))
}

// cost judges two computed contents, and says what that took: memory, and how
// many times each byte was looked at.
func cost(t *testing.T, old, new made) (v verdict, memory uint64, effort float64, err error) {
	t.Helper()
	goruntime.GC()
	p := &peak{}
	old.peak, new.peak = p, p
	total := old.size() + new.size()
	m := newMeter(t.Context(), total)
	left := m.left
	pr := &pair{
		m:   m,
		old: &source{r: old, size: old.size(), m: m, short: io.ErrUnexpectedEOF},
		new: &source{r: new, size: new.size(), m: m, short: io.ErrUnexpectedEOF},
	}
	v = pr.judge()
	return v, p.most, float64(left-m.left) / float64(total), m.err
}

const bigSize = 16 << 20

func fixed(s string) func(int) string { return func(int) string { return s } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// cycled is numbered, over and over: to write millions of numbers takes longer
// than to judge them.
func cycled(format string) func(int) string {
	var list [1024]string
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return func(i int) string { return list[i%len(list)] }
}

// Contents that are large in one way each.
func bigCases(million int) []struct {
	name     string
	old, new made
	why      string
	memory   uint64 // bytes; garbage that is not yet collected counts too
	effort   float64
} {
	const few = 8 << 20
	long := strings.Repeat("x", 1<<16)
	lines := func(n int, tail string) made {
		return made{n: n, part: cycled("{\"id\":1%08d,\"text\":\"some text to make it longer\"}\n"), tail: tail}
	}
	deep := func(n int, middle string) made {
		return made{head: strings.Repeat("[", n) + middle, tail: strings.Repeat("]", n)}
	}
	return []struct {
		name     string
		old, new made
		why      string
		memory   uint64
		effort   float64
	}{
		{"JSON Lines", lines(bigSize/60, ""), lines(bigSize/60, "{\"a\":1}\n"), "", few, 4},
		{"array", made{head: "[0", n: bigSize / 16, part: cycled(",{\"id\":1%07d}"), tail: "]"}, made{head: "[0", n: bigSize / 16, part: cycled(",{\"id\":1%07d}"), tail: ",1]"}, "", few, 4},
		{"text", made{n: bigSize / 20, part: cycled("line number %07d\n")}, made{head: "new\n", n: bigSize / 20, part: cycled("line number %07d\n")}, "", few, 4},
		{"one string", made{head: `{"a":"`, n: bigSize >> 16, part: fixed(long), tail: `"}`}, made{head: `{"b":1,"a":"`, n: bigSize >> 16, part: fixed(long), tail: `"}`}, "", few, 4},
		{"one string, changed at the end", made{head: `{"a":"`, n: bigSize >> 16, part: fixed(long), tail: `"}`}, made{head: `{"a":"`, n: bigSize >> 16, part: fixed(long), tail: `!"}`}, "value was changed", few, 4},
		{"one key", made{head: `{"`, n: bigSize >> 16, part: fixed(long), tail: `":1}`}, made{head: `{"b":1,"`, n: bigSize >> 16, part: fixed(long), tail: `":1}`}, "", few, 4},
		{"one line", made{n: bigSize >> 16, part: fixed(long), tail: "\n"}, made{head: "new\n", n: bigSize >> 16, part: fixed(long), tail: "\r\n"}, "", few, 4},
		{"one number", made{head: `{"a":`, n: bigSize >> 16, part: fixed(strings.Repeat("1", 1<<16)), tail: `}`}, made{head: `{"b":1,"a":`, n: bigSize >> 16, part: fixed(strings.Repeat("1", 1<<16)), tail: `}`}, "", few, 4},
		{"one gap", made{head: `{"a":`, n: bigSize >> 16, part: fixed(strings.Repeat(" ", 1<<16)), tail: `1}`}, made{head: `{"b":1,"a":1}`}, "", few, 4},
		{"one array of arrays", made{head: "[[[]", n: bigSize / 8, part: fixed(",[[],[]]"), tail: "]]"}, made{head: "[[1,[]", n: bigSize / 8, part: fixed(",[[],[]]"), tail: "]]"}, "", few, 4},
		{
			"keys in another order",
			made{head: `{"end":1` + repeated(million, "", numbered(`,"%07d":1`)) + "}"},
			made{head: "{" + repeated(million, "", func(i int) string { return fmt.Sprintf(`"%07d":1,`, million-1-i) }) + `"end":1}`},
			"", 128 << 20, 16,
		},
		{"deep", deep(maxDepth, "1"), deep(maxDepth, "1,2"), "", few * 2, 70},
		{"deep, changed", deep(1000, "1"), deep(1000, "2"), "element was removed, changed or moved", few, 600},
	}
}

func TestBigContents(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // garbage is not what is held
	million := 1_000_000
	if testing.Short() {
		million = 10_000
	}
	for _, c := range bigCases(million) {
		t.Run(c.name, func(t *testing.T) {
			v, memory, effort, err := cost(t, c.old, c.new)
			if err != nil || v.why != c.why {
				t.Fatalf("got %+v, %v", v, err)
			}
			if memory > c.memory {
				t.Errorf("%d MiB in use, want at most %d", memory>>20, c.memory>>20)
			}
			if effort > c.effort {
				t.Errorf("each byte was looked at %.1f times", effort)
			}
			t.Logf("%d MiB of memory, %.2f looks at each byte", memory>>20, effort)
		})
	}
}

// TestHundredMegabytes: a large file takes no more memory than a small one.
func TestHundredMegabytes(t *testing.T) {
	size := 100_000_000
	if testing.Short() {
		size = 10_000_000
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // garbage is not what is held
	for name, c := range map[string]struct{ head, part, tail, more string }{
		"JSON Lines": {"", "{\"id\":1%08d,\"text\":\"some text to make it longer\"}\n", "", "{\"a\":1}\n"},
		"JSON":       {"[0", ",{\"id\":1%08d,\"text\":\"some text to make it longer\"}", "]", ",1]"},
		"CSV":        {"id,text\n", "1%08d,\"some text to make it longer, and a comma\"\n", "", "1,x\n"},
	} {
		part := cycled(c.part)
		n := size / len(part(0))
		old := made{head: c.head, n: n, part: part, tail: c.tail}
		v, memory, _, err := cost(t, old, made{head: c.head, n: n, part: part, tail: c.more})
		if err != nil || v.why != "" {
			t.Errorf("%s: got %+v, %v", name, v, err)
		}
		if memory > 8<<20 {
			t.Errorf("%s: %d MiB in use, want at most 8", name, memory>>20)
		}
	}
}

// Contents that are made to be expensive, or have too much of something. What
// is too complex is an error, never a pass.
func TestTooComplex(t *testing.T) {
	spaces := strings.Repeat(" ", 1<<20)
	deep := func(n int) made { return made{head: strings.Repeat("[", n), tail: strings.Repeat("]", n)} }
	for _, c := range []struct {
		name     string
		old, new made
	}{
		{"too deep", deep(maxDepth + 1), deep(maxDepth + 2)},
		{"too deep, new", made{head: "[]"}, deep(maxDepth + 1)},
		{"too many keys", made{head: `{"a":1`, n: maxKeys, part: numbered(`,"%07d":1`), tail: "}"}, made{head: "{}"}},
		{"a gap read over and over", made{head: "[[" + spaces + "1]]"}, made{head: "[0", n: 1 << 20, part: fixed(",[2]"), tail: "]"}},
		{"zeros read over and over", made{head: "[[1" + strings.Repeat("0", 1<<15) + "e1]]"}, made{head: "[0", n: 1 << 20, part: fixed(",[2]"), tail: "]"}},
		{"number too long to compare", made{head: "[1" + strings.Repeat("0", maxNumber) + "]"}, made{head: "[1" + strings.Repeat("0", maxNumber) + ".0]"}},
		{"exponent too long to compare", made{head: "[1e1" + strings.Repeat("0", maxExponent) + "]"}, made{head: "[10e1" + strings.Repeat("0", maxExponent) + "]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.old.n+c.new.n > 1000 {
				t.Skip("takes a second")
			}
			v, _, _, err := cost(t, c.old, c.new)
			if !errors.Is(err, errComplex) || v.verb != 0 {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestTooComplexIsALoss(t *testing.T) {
	old, new := strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1), "[1]"
	if got := verdictOf(t, "f", old, new, Rules{}); got != "/data/f: file is too complex to judge" {
		t.Error(got)
	}
	r := Rules{Volatile: pointers(t, "/data/f#/a")}
	if same(t, r, old, new) {
		t.Error("too complex and the same")
	}
}

// TestExpensiveButLinear: shapes that tempt to look at things again and again.
func TestExpensiveButLinear(t *testing.T) {
	const n = 1 << 14
	for _, c := range []struct {
		name, old, new string
		most           float64
	}{
		{"all elements fail late", "[[" + strings.Repeat("1,", 100) + "2]]", "[" + strings.Repeat("["+strings.Repeat("1,", 100)+"3],", n/100) + "0]", 6},
		{"each is found late", "[" + strings.Repeat("1,", n) + "2]", "[" + strings.Repeat("0,1,", n) + "2]", 6},
		{"none is found", "[2" + strings.Repeat(",2", n) + "]", "[1" + strings.Repeat(",1", 2*n) + "]", 6},
		{"nested search", nested(8, "1"), nested(8, "0,1"), 20},
		{"records in front", "{\"a\":1}\n{\"b\":1}\n", strings.Repeat("{\"c\":1,\"a\":2}\n", n) + "{\"a\":1}\n{\"b\":1}\n", 8},
		{"lines that are alike", strings.Repeat("a", 1000) + "b\n", strings.Repeat(strings.Repeat("a", 1000)+"c\n", n/100), 4},
		{"period", "[" + strings.Repeat("1,2,1,", n) + "0]", "[" + strings.Repeat("1,1,2,1,", n) + "0]", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, effort, err := cost(t, made{head: c.old}, made{head: c.new})
			if err != nil || effort > c.most {
				t.Errorf("each byte was looked at %.1f times, want at most %.0f; %v", effort, c.most, err)
			}
			t.Logf("%.2f looks at each byte", effort)
		})
	}
}

// nested returns lists in lists, in which the searched one is behind others.
func nested(depth int, leaf string) string {
	s := "[" + leaf + "]"
	for range depth {
		s = "[" + s + "," + s + "]"
	}
	return s
}

// TestCollisions: keys are told apart by what they are, not by their hashes.
func TestCollisions(t *testing.T) {
	var x index
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	for i := range keys {
		x.add(7, int64(i))
	}
	for i, k := range keys {
		if !x.find(7, func(at int64) bool { return keys[at] == k }) {
			t.Errorf("%d not found", i)
		}
	}
	if x.find(7, func(int64) bool { return false }) || x.find(8, func(int64) bool { return true }) {
		t.Error("found what is not there")
	}
	b := []byte(`"a" "b" "a"`)
	s := &scan{c: newCursor(&source{r: bytes.NewReader(b), size: int64(len(b)), m: newMeter(t.Context(), 100)}, 0)}
	if !s.distinct([]key{{1, 0}, {1, 4}}) || s.distinct([]key{{1, 0}, {1, 4}, {1, 8}}) {
		t.Error("keys of one hash")
	}
	many := []key{{1, 0}, {1, 4}}
	for i := range 40 {
		many = append(many, key{uint64(i + 2), 0})
	}
	if !s.distinct(many) || s.distinct(append(many, key{1, 8})) {
		t.Error("many keys, some of one hash")
	}
}
