package undo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const (
	// around is how many equal lines are shown around a change.
	around = 3
	// maxLines is how many lines are compared, a side, besides those that both
	// begin or end with.
	maxLines = 20_000
	// maxEdits bounds the search for the shortest difference: it takes memory by its
	// square. Beyond it, all lines are shown as replaced.
	maxEdits = 1500
)

// nothing is the name of a side that is not there.
const nothing = "/dev/null"

// unified returns the difference of two texts in the unified format, with names
// that [quoted] made; false when there are too many lines. Its time is bounded
// whatever the texts are: by the lines times the edits, and both have bounds.
func unified(oldName, newName, a, b string) (string, bool) {
	x, y := lines(a), lines(b)
	head := 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < min(len(x), len(y))-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	p, q := x[head:len(x)-tail], y[head:len(y)-tail]
	if len(p) == 0 && len(q) == 0 {
		return "", true
	}
	// Where one side has nothing there is nothing to search for.
	if min(len(p), len(q)) > 0 && max(len(p), len(q)) > maxLines {
		return "", false
	}
	runs := []run{{same: true, a: head, b: head}}
	runs = append(runs, edits(p, q)...)
	runs = append(runs, run{same: true, a: tail, b: tail})
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	writeHunks(&out, x, y, runs)
	return out.String(), true
}

// lines splits a text after each line end.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// run is a number of lines of both sides that are the same, or that replace each
// other.
type run struct {
	same bool
	a, b int
}

// edits returns runs that lead from p to q: the fewest lines are replaced (Myers,
// An O(ND) Difference Algorithm, 1986), or all when that would be too many.
func edits(p, q []string) []run {
	a, b := numbered(p, q)
	trace, found := search(a, b)
	if !found {
		return []run{{false, len(p), len(q)}}
	}
	var back []run // from the end
	add := func(r run) {
		if n := len(back); n > 0 && back[n-1].same == r.same {
			back[n-1].a += r.a
			back[n-1].b += r.b
			return
		}
		back = append(back, r)
	}
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		k := x - y
		v := trace[d] // as it was before edit d, from -d to d
		px, py := 0, 0
		if d > 0 {
			pk := k + 1
			if k != -d && (k == d || v[d+k-1] >= v[d+k+1]) {
				pk = k - 1
			}
			px = int(v[d+pk])
			py = px - pk
		}
		n := min(x-px, y-py)
		if n > 0 {
			add(run{true, n, n})
			x, y = x-n, y-n
		}
		if d > 0 {
			add(run{false, x - px, y - py})
		}
		x, y = px, py
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// numbered gives equal lines equal numbers.
func numbered(p, q []string) (a, b []int32) {
	ids := map[string]int32{}
	number := func(list []string) []int32 {
		out := make([]int32, len(list))
		for i, l := range list {
			id, ok := ids[l]
			if !ok {
				id = int32(len(ids))
				ids[l] = id
			}
			out[i] = id
		}
		return out
	}
	return number(p), number(q)
}

// search finds the number of edits. For each number d up to it, it returns how far
// each diagonal k was reached with d-1 edits, at d+k.
func search(a, b []int32) (trace [][]int32, found bool) {
	most := min(len(a)+len(b), maxEdits)
	reach := make([]int32, 2*most+3)
	mid := most + 1
	for d := 0; d <= most; d++ {
		trace = append(trace, append([]int32(nil), reach[mid-d:mid+d+1]...))
		for k := -d; k <= d; k += 2 {
			x := int32(0)
			switch {
			case d == 0:
			case k == -d || (k != d && reach[mid+k-1] < reach[mid+k+1]):
				x = reach[mid+k+1]
			default:
				x = reach[mid+k-1] + 1
			}
			y := x - int32(k)
			for int(x) < len(a) && int(y) < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			reach[mid+k] = x
			if int(x) >= len(a) && int(y) >= len(b) {
				return trace, true
			}
		}
	}
	return nil, false
}

// writeHunks writes the changes, with equal lines around them.
func writeHunks(out *strings.Builder, x, y []string, runs []run) {
	i, j := 0, 0
	var h hunk
	for n, r := range runs {
		switch {
		case !r.same:
			if !h.open {
				h = hunk{open: true, i: max(0, i-around), j: max(0, j-around)}
				h.lines(" ", x[h.i:i])
			}
			h.lines("-", x[i:i+r.a])
			h.lines("+", y[j:j+r.b])
		case h.open && (r.a > 2*around || n == len(runs)-1):
			end := min(r.a, around)
			h.lines(" ", x[i:i+end])
			h.write(out, i+end, j+end)
			h = hunk{}
		case h.open:
			h.lines(" ", x[i:i+r.a])
		}
		i, j = i+r.a, j+r.b
	}
	if h.open {
		h.write(out, i, j)
	}
}

// hunk is a group of changes that are near to each other, from line i of the one
// side and j of the other.
type hunk struct {
	open bool
	i, j int
	text strings.Builder
}

func (h *hunk) lines(mark string, list []string) {
	for _, l := range list {
		h.text.WriteString(mark + l)
		if !strings.HasSuffix(l, "\n") {
			h.text.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func (h *hunk) write(out *strings.Builder, i, j int) {
	fmt.Fprintf(out, "@@ -%s +%s @@\n%s", span(h.i, i), span(h.j, j), h.text.String())
}

// span returns lines from a to b, counted from 0, as the unified format has them.
func span(a, b int) string {
	switch b - a {
	case 0:
		return fmt.Sprintf("%d,0", a)
	case 1:
		return strconv.Itoa(a + 1)
	}
	return fmt.Sprintf("%d,%d", a+1, b-a)
}

// quoted returns a name as lines of a diff have it: as it is or, with characters
// that are not printable, in quotes.
func quoted(name string) string {
	if name == "" || strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
