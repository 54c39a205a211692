package trust

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Bounds of what is shown of a change, in lines. A package decides how much it
// changes, not how much of a terminal it fills.
const (
	maxWider = 50
	maxShown = 400
	maxSide  = 40 // of one part, before or after
	around   = 3  // unchanged ones
)

// describe returns what is different between two records as text: what became
// wider, and a unified diff by parts. It is empty where nothing is.
func describe(was, now Record) string {
	var b strings.Builder
	if ws := wider(was, now); len(ws) > 0 {
		b.WriteString("New, or wider than what was trusted:\n")
		for _, w := range ws[:min(len(ws), maxWider)] {
			fmt.Fprintf(&b, "  ! %s\n", clip(w))
		}
		if more := len(ws) - maxWider; more > 0 {
			fmt.Fprintf(&b, "  ! … and %d more\n", more)
		}
	}
	shown, hidden := 0, []string(nil)
	for p := range parts(was, now) {
		if shown >= maxShown {
			hidden = append(hidden, p.name)
			continue
		}
		h := hunk(p.name, wrap(p.was()), wrap(p.now()))
		if shown == 0 && len(h) > 0 {
			b.WriteString("--- trusted\n+++ now\n")
		}
		shown += len(h)
		for _, l := range h {
			b.WriteString(l + "\n")
		}
	}
	if len(hidden) > 0 {
		fmt.Fprintf(&b, "… and %d more parts: %s\n", len(hidden), few(hidden))
	}
	return b.String()
}

// part is a part of a record in two versions.
type part struct {
	name     string
	was, now func() []string
}

// parts yields the parts of two records that may be different, those that an
// operator has to see first.
func parts(was, now Record) func(yield func(part) bool) {
	of := func(name string, f func(Record) []string) part {
		return part{name, func() []string { return f(was) }, func() []string { return f(now) }}
	}
	return func(yield func(part) bool) {
		for _, p := range []part{
			of("package", packageLines),
			of("requests", func(r Record) []string { return requestLines(r.Requests) }),
			of("granted", func(r Record) []string { return grantLines(r.Granted) }),
			of("relaxations", func(r Record) []string { return relaxationLines(r.Relaxations) }),
			of("limits", limitsOf),
			of("labels", func(r Record) []string { return labelLines(r.Labels) }),
			of("warmup", func(r Record) []string { return warmupLines(r.Warmup) }),
		} {
			if !yield(p) {
				return
			}
		}
		for p := range pairs(was.Tools, now.Tools) {
			if p.both() && p.was.equal(*p.now) {
				continue
			}
			t := part{"tool " + p.name, func() []string { return toolLines(p.was) }, func() []string { return toolLines(p.now) }}
			if !yield(t) {
				return
			}
		}
	}
}

// limitsOf leaves out the limits of no record.
func limitsOf(r Record) []string {
	if r.Format == "" {
		return nil
	}
	return limitLines(r.Limits)
}

// hunk returns the difference between two lists of lines as one hunk of a
// unified diff, nothing where there is none. Lines that begin and end both, and
// all that is beyond maxSide lines, are left out.
func hunk(name string, a, b []string) []string {
	if slices.Equal(a, b) {
		return nil
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from := max(0, head-around)
	after := min(tail, around)
	old, now := cut(a[head:len(a)-tail]), cut(b[head:len(b)-tail])
	ls := []string{fmt.Sprintf("@@ -%s +%s @@ %s", span(from, len(a)-tail+after), span(from, len(b)-tail+after), name)}
	emit := func(mark string, lines []string) {
		for _, l := range lines {
			ls = append(ls, mark+l)
		}
	}
	emit(" ", a[from:head])
	for _, op := range difflib.NewMatcherWithJunk(old, now, false, nil).GetOpCodes() {
		if op.Tag == 'e' {
			emit(" ", old[op.I1:op.I2])
			continue
		}
		emit("-", old[op.I1:op.I2])
		emit("+", now[op.J1:op.J2])
	}
	emit(" ", a[len(a)-tail:len(a)-tail+after])
	return ls
}

// cut returns at most maxSide lines and, where there are more, how many and a
// digest of them: a change in what is not shown shows.
func cut(ls []string) []string {
	if len(ls) <= maxSide+1 {
		return ls
	}
	rest := ls[maxSide:]
	h := sha256.Sum256([]byte(strings.Join(rest, "\n")))
	return append(slices.Clone(ls[:maxSide]), fmt.Sprintf("… %d more lines, sha256:%x…", len(rest), h[:8]))
}

// span returns lines from a to b, counted from 0, as a unified diff writes them.
func span(a, b int) string {
	if a == b {
		return fmt.Sprintf("%d,0", a)
	}
	return fmt.Sprintf("%d,%d", a+1, b-a)
}
