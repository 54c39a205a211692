package demo

import (
	"context"
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

// group is a part of the table under a heading of its own: the cases of a hint.
type group struct {
	hint    string // empty: those where no claim is on trial
	heading string
}

var groups = []group{
	{capabilities.ReadOnlyHint.String(), "readOnlyHint: who declares true changes nothing"},
	{capabilities.DestructiveHint.String(), "destructiveHint: who declares false loses nothing that was there"},
	{capabilities.IdempotentHint.String(), "idempotentHint: who declares true changes nothing further when it is called again"},
	{capabilities.OpenWorldHint.String(), "openWorldHint: who declares false reaches nobody outside"},
	{"", "Escapes, errors and bad start-up code: no claim is on trial, nothing gets out"},
}

// of returns the cases of the group: those that keep the claim, then those that
// break it.
func (g group) of(rs []*Result) (kept, broken []*Result) {
	for _, r := range rs {
		switch {
		case r.Hint != g.hint:
		case r.Honest != nil && !*r.Honest:
			broken = append(broken, r)
		default:
			kept = append(kept, r)
		}
	}
	return kept, broken
}

// columns of the table. In a narrow one what was tried has lines of its own.
const (
	nameColumn = iota
	claimColumn
	happenedColumn
	leftColumn
	triedColumn
)

var titles = []string{"tool", "declares", "ended", "left behind", "tried"}

// legend explains the column left behind.
const legend = "left behind: + new, ~ changed, - gone: files, keys and messages, compared before and after the call"

// widest is the width of a table whose reader's is not known.
const (
	widest   = 120
	leastFor = 26 // characters of what was tried, in a column of its own
)

// printTable prints the cases for a person: what each tool declares, what it
// tried, how that ended, and what is left behind.
func printTable(o Options, s *stage, rs []*Result, sum Summary) error {
	if o.Width == 0 {
		o.Width = widest
	}
	var b strings.Builder
	for _, g := range groups {
		g.print(&b, o, rs)
	}
	fmt.Fprintln(&b, legend)
	if err := printExample(&b, s, rs); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n", sum.line(o))
	_, err := io.WriteString(o.Out, b.String())
	return err
}

func (g group) print(b *strings.Builder, o Options, rs []*Result) {
	kept, broken := g.of(rs)
	all := append(kept, broken...)
	l := newLayout(o, all)
	fmt.Fprintln(b, o.paint(term.Bold, g.heading))
	l.row(b, titles, term.Bold)
	for _, r := range all {
		l.row(b, r.cells(), r.style())
		if r.violation != nil {
			for i, line := range wrap(term.Line(r.deed()), o.Width-len(stopped)) {
				fmt.Fprintln(b, o.paint(r.style(), []string{stopped, strings.Repeat(" ", len(stopped))}[min(i, 1)]+line))
			}
		}
		for _, w := range r.wrong {
			fmt.Fprintln(b, o.paint(term.Red, "    NOT AS IT SHOULD BE: "+term.Line(w)))
		}
	}
	if len(broken) > 0 && broken[0].told != "" {
		told := fmt.Sprintf("The client was told of %s: %s", broken[0].Tool, term.Line(broken[0].told))
		fmt.Fprintln(b, strings.Join(wrap(told, o.Width), "\n"))
	}
	fmt.Fprintln(b)
}

// stopped begins the line that says what a stopped call did.
const stopped = "    stopped: "

// deed says what broke the claim: the operation that was stopped, or what of all
// that the call would have left is too much, and why.
func (r *Result) deed() string {
	v := r.violation
	said := string(v.Operation)
	switch {
	case v.Phase != capabilities.PhaseOperation:
		said = fmt.Sprintf("at %s, %s", v.Phase, v.Object)
	case v.Object != said:
		said += " of " + v.Object
	}
	if v.Detail != "" {
		said += ": " + strings.TrimSuffix(v.Detail, ".")
	}
	return said
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
	if !slices.ContainsFunc(rs, func(r *Result) bool { return r.declares() != "" }) {
		l.widths[claimColumn] = 0
	}
	used := 0
	for _, w := range l.widths[:leftColumn] {
		used += w + 2
	}
	// What is left behind gives way first, then what was tried goes below, and the
	// changes with it.
	disk := min(l.widths[leftColumn], 20)
	if l.rest = o.Width - used - disk - 2; l.rest < leastFor {
		l.rest, disk = 0, max(len("nothing"), min(disk, o.Width-used))
	}
	l.widths[leftColumn] = disk
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
	return []string{term.Line(r.name()), r.declares(), r.happened(), term.Line(r.left()), term.Line(r.Attempted)}
}

// row writes one row, in as many lines as it takes.
func (l *layout) row(b *strings.Builder, cells []string, style string) {
	width := l.rest
	if width == 0 {
		width = l.o.Width - 4
		if d := cells[leftColumn]; utf8.RuneCountInString(d) > l.widths[leftColumn] {
			cells[leftColumn], cells[triedColumn] = "changed", cells[triedColumn]+" (left: "+d+")"
		}
	}
	tried := wrap(cells[triedColumn], width)
	var line strings.Builder
	for i, c := range cells[:triedColumn] {
		if l.widths[i] == 0 {
			continue
		}
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

// declares says what the tool's author declared of the hint on trial.
func (r *Result) declares() string {
	values := map[string]capabilities.Tri{
		capabilities.ReadOnlyHint.String():    r.claim.ReadOnly,
		capabilities.DestructiveHint.String(): r.claim.Destructive,
		capabilities.IdempotentHint.String():  r.claim.Idempotent,
		capabilities.OpenWorldHint.String():   r.claim.OpenWorld,
	}
	v, onTrial := values[r.Hint]
	switch {
	case !onTrial:
		return ""
	case v == capabilities.True:
		return "true"
	case v == capabilities.False:
		return "false"
	}
	return "nothing"
}

// happened says how the call ended, with what was refused or its label.
func (r *Result) happened() string {
	if r.detail == "" {
		return string(r.Outcome)
	}
	return fmt.Sprintf("%s (%s)", r.Outcome, r.detail)
}

// left says what differs from before the call.
func (r *Result) left() string {
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

// printExample shows what the log says of the first violation.
func printExample(w io.Writer, s *stage, rs []*Result) error {
	for _, r := range rs {
		if r.Outcome != runtime.Violation {
			continue
		}
		_, err := audit.Read(context.Background(), s.store, audit.Filter{Violations: true}, func(rec audit.Record) error {
			if rec.CallID != r.callID {
				return nil
			}
			b, err := json.Marshal(rec)
			if err == nil {
				_, err = fmt.Fprintf(w, "\nThe log says of %s:\n  %s\n", r.name(), term.JSON(b))
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
