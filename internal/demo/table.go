package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

func (o Options) paint(style, s string) string { return term.Paint(o.Colour, style, s) }

// group is a part of the table under a heading of its own.
type group struct {
	heading string
	holds   func(*Result) bool
}

var groups = []group{
	{"Honest tools: they keep what they declare", func(r *Result) bool { return r.Honest != nil && *r.Honest }},
	{"Lying tools: they break what they declare", func(r *Result) bool { return r.Honest != nil && !*r.Honest }},
	{"Escapes, errors and bad start-up code: no claim is on trial, nothing gets out", func(r *Result) bool { return r.Honest == nil }},
}

// legend explains the column declares.
const legend = "declares: R readOnlyHint, D destructiveHint, I idempotentHint, O openWorldHint;\n" +
	"+ true, - false, not there: not declared; * is on trial."

// columns of the table. In a narrow one what was tried has lines of its own.
const (
	nameColumn = iota
	claimColumn
	happenedColumn
	diskColumn
	triedColumn
)

var titles = []string{"tool", "declares", "happened", "on disk", "tried"}

// widest is the width of a table whose reader's is not known.
const (
	widest   = 120
	leastFor = 24 // characters of what was tried, in a column of its own
)

// printTable prints the cases for a person: what each tool declares, what it
// tried, what happened, and what is left on disk.
func printTable(o Options, s *stage, rs []*Result, sum Summary) error {
	if o.Width == 0 {
		o.Width = widest
	}
	var b strings.Builder
	for _, g := range groups {
		g.print(&b, o, slices.DeleteFunc(slices.Clone(rs), func(r *Result) bool { return !g.holds(r) }))
	}
	fmt.Fprintln(&b, legend)
	if err := printExample(&b, o, s, rs); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n", sum.line(o))
	_, err := io.WriteString(o.Out, b.String())
	return err
}

func (g group) print(b *strings.Builder, o Options, rs []*Result) {
	l := newLayout(o, rs)
	fmt.Fprintln(b, o.paint(term.Bold, g.heading))
	l.row(b, titles, term.Bold)
	for _, r := range rs {
		l.row(b, r.cells(), r.style())
		for _, w := range r.wrong {
			fmt.Fprintln(b, o.paint(term.Red, "    NOT AS IT SHOULD BE: "+term.Line(w)))
		}
	}
	fmt.Fprintln(b)
}

// layout is the widths of the columns that a width of lines allows.
type layout struct {
	o      Options
	widths []int // but for the last column, which has the rest
	rest   int   // of the last column; 0: it has lines of its own
}

func newLayout(o Options, rs []*Result) *layout {
	l := &layout{o: o, widths: make([]int, len(titles))}
	for _, cells := range append([][]string{titles}, cellsOf(rs)...) {
		for i, c := range cells {
			l.widths[i] = max(l.widths[i], utf8.RuneCountInString(c))
		}
	}
	used := 0
	for _, w := range l.widths[:diskColumn] {
		used += w + 2
	}
	// What changed on disk gives way first, then what was tried goes below, and the
	// changes with it.
	disk := min(l.widths[diskColumn], 20)
	if l.rest = o.Width - used - disk - 2; l.rest < leastFor {
		l.rest, disk = 0, max(len("nothing"), min(disk, o.Width-used))
	}
	l.widths[diskColumn] = disk
	return l
}

func cellsOf(rs []*Result) [][]string {
	var all [][]string
	for _, r := range rs {
		all = append(all, r.cells())
	}
	return all
}

func (r *Result) cells() []string {
	return []string{term.Line(r.name()), r.declares(), r.happened(), term.Line(r.disk()), term.Line(r.Attempted)}
}

// row writes one row, in as many lines as it takes.
func (l *layout) row(b *strings.Builder, cells []string, style string) {
	width := l.rest
	if width == 0 {
		width = l.o.Width - 4
		if d := cells[diskColumn]; utf8.RuneCountInString(d) > l.widths[diskColumn] {
			cells[diskColumn], cells[triedColumn] = "changed", cells[triedColumn]+" (on disk: "+d+")"
		}
	}
	tried := wrap(cells[triedColumn], width)
	var line strings.Builder
	for i, c := range cells[:triedColumn] {
		c = cutTo(c, l.widths[i])
		line.WriteString(c + strings.Repeat(" ", l.widths[i]-utf8.RuneCountInString(c)+2))
	}
	indent := "    "
	if l.rest > 0 {
		indent = strings.Repeat(" ", utf8.RuneCountInString(line.String()))
		line.WriteString(tried[0])
		tried = tried[1:]
	}
	fmt.Fprintln(b, l.o.paint(style, strings.TrimRight(line.String(), " ")))
	for _, t := range tried {
		fmt.Fprintln(b, l.o.paint(style, indent+t))
	}
}

// wrap breaks s at spaces into lines of a width, at least one.
func wrap(s string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func cutTo(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// name returns the tool's name with its package's.
func (r *Result) name() string {
	if r.Tool == "" {
		return r.Package
	}
	return r.Package + "/" + r.Tool
}

// declares says in short what the tool's author declared.
func (r *Result) declares() string {
	var b []string
	for _, h := range []struct {
		letter string
		hint   capabilities.Hint
		value  capabilities.Tri
	}{
		{"R", capabilities.ReadOnlyHint, r.claim.ReadOnly},
		{"D", capabilities.DestructiveHint, r.claim.Destructive},
		{"I", capabilities.IdempotentHint, r.claim.Idempotent},
		{"O", capabilities.OpenWorldHint, r.claim.OpenWorld},
	} {
		sign := map[capabilities.Tri]string{capabilities.True: "+", capabilities.False: "-"}[h.value]
		mark := ""
		if h.hint.String() == r.Hint {
			mark = "*"
		}
		if sign != "" || mark != "" {
			b = append(b, h.letter+sign+mark)
		}
	}
	return strings.Join(b, " ")
}

// happened says how the call ended, with what was stopped or refused.
func (r *Result) happened() string {
	if r.detail == "" {
		return string(r.Outcome)
	}
	return fmt.Sprintf("%s (%s)", r.Outcome, r.detail)
}

// disk says what differs on disk from before the call.
func (r *Result) disk() string {
	const shown = 3
	if len(r.changes) == 0 {
		return "nothing"
	}
	var names []string
	for _, c := range r.changes[:min(shown, len(r.changes))] {
		names = append(names, strings.Replace(c, r.Package+"/", "", 1))
	}
	if more := len(r.changes) - shown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

func (r *Result) style() string {
	switch {
	case !r.OK():
		return term.Red
	case r.Outcome == runtime.OK:
		return term.Green
	case r.Outcome == runtime.ToolError:
		return term.Magenta
	case r.Outcome == outcomeLoadError:
		return term.Cyan
	}
	return term.Yellow
}

// printExample shows what became of the first violation: what the client was
// told, and what the log says.
func printExample(w io.Writer, o Options, s *stage, rs []*Result) error {
	for _, r := range rs {
		if r.Outcome != runtime.Violation {
			continue
		}
		fmt.Fprintf(w, "\nFor example %s. The client was told:\n  %s\n", r.name(),
			strings.Join(wrap(term.Line(r.told), o.Width-2), "\n  "))
		_, err := audit.Read(s.state, audit.Filter{Violations: true}, func(rec audit.Record) error {
			if rec.CallID != r.callID {
				return nil
			}
			b, err := json.Marshal(rec)
			if err == nil {
				_, err = fmt.Fprintf(w, "The log says:\n  %s\n", term.JSON(b))
			}
			return err
		})
		return err
	}
	return nil
}

func (s Summary) line(o Options) string {
	l := fmt.Sprintf("%d cases: %d honest calls went well, %d lies were stopped with nothing left behind, %d others were held.",
		s.Cases, s.Passed, s.Stopped, s.Held)
	if s.Wrong == 0 {
		return o.paint(term.Green, l)
	}
	return l + " " + o.paint(term.Red, fmt.Sprintf("%d did not end as they should.", s.Wrong))
}
