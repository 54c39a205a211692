package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

// The colours of a terminal (ECMA-48, SGR).
const (
	red   = "31"
	green = "32"
	bold  = "1"
)

func (o Options) paint(colour, s string) string {
	if !o.Colour {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// printTable prints the cases for a person: what each tool declares, what it
// tried, what happened, and what is left on disk.
func printTable(o Options, s *stage, rs []*Result, sum Summary) error {
	rows := [][]string{{"tool", "declares", "tried", "happened", "left on disk"}}
	for _, r := range rs {
		rows = append(rows, []string{term.Line(r.name()), r.claim(), term.Line(r.Attempted), r.happened(), term.Line(r.disk())})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		line := tableLine(row, widths)
		if i == 0 {
			fmt.Fprintln(&b, o.paint(bold, line))
			continue
		}
		r := rs[i-1]
		if i > 1 && rs[i-2].Package != r.Package {
			fmt.Fprintln(&b)
		}
		fmt.Fprintln(&b, o.paint(r.colour(), line))
		for _, w := range r.wrong {
			fmt.Fprintln(&b, o.paint(red, "    NOT AS IT SHOULD BE: "+term.Line(w)))
		}
	}
	if err := printExample(&b, s, rs); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n", sum.line(o))
	_, err := io.WriteString(o.Out, b.String())
	return err
}

func tableLine(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
	}
	return b.String()
}

// name returns the tool's name with its package's.
func (r *Result) name() string {
	if r.Tool == "" {
		return r.Package
	}
	return r.Package + "/" + r.Tool
}

// claim says what the tool declares on the hint on trial.
func (r *Result) claim() string {
	if r.declared == "" {
		return "-"
	}
	return r.declared
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
	if more := len(r.changes) - shown; more > 0 {
		return strings.Join(r.changes[:shown], " ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(r.changes, " ")
}

func (r *Result) colour() string {
	switch {
	case !r.OK():
		return red
	case r.Outcome == runtime.OK:
		return green
	}
	return "33"
}

// printExample shows what became of the first violation: what the client was
// told, and what the log says.
func printExample(w io.Writer, s *stage, rs []*Result) error {
	for _, r := range rs {
		if r.Outcome != runtime.Violation {
			continue
		}
		fmt.Fprintf(w, "\nFor example %s. The client was told:\n  %s\n", r.name(), term.Line(r.told))
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
		return o.paint(green, l)
	}
	return l + " " + o.paint(red, fmt.Sprintf("%d did not end as they should.", s.Wrong))
}
