package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// Markdown writes the report.
func (r *Results) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	r.goals(&b)
	for _, t := range r.Tables {
		t.markdown(&b)
	}
	r.idle(&b)
	r.curves(&b)
	r.residue(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Results) head(b *strings.Builder) {
	m := r.Machine
	b.WriteString("# Report\n\n")
	fmt.Fprintf(b, "Made on %s by\n\n```sh\n%s\n```\n\n", m.Time.Format("2006-01-02 15:04 MST"), r.Command)
	if r.Short {
		b.WriteString("**A short run, which shows that the command works. Its figures say nothing.**\n\n")
	}
	b.WriteString("How it measures stands in [README.md](README.md). Figures are medians over the rounds; each ratio is the median of the rounds' ratios, with its quartiles. Compare within a table only.\n\n")
	fmt.Fprintf(b, "- machine: %s; GOMAXPROCS %d; load when it began: %s\n", m.String(), m.GOMAXPROCS, m.Load)
	fmt.Fprintf(b, "- garbage collector: GOGC %d in the measuring process, which holds all subjects of the engine's tables, Extism among them; servers as their rows say\n", m.GOGC)
	var versions []string
	for _, v := range m.Versions {
		versions = append(versions, v.Name+" "+v.Version)
	}
	fmt.Fprintf(b, "- versions: %s\n", strings.Join(versions, ", "))
}

func (r *Results) goals(b *strings.Builder) {
	b.WriteString("\n## Goals\n\n| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, g := range Goals() {
		verdict, text := g.Judge(r)
		if r.Short && verdict != NotMeasured {
			verdict = "a short run says nothing"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", cell(g.What), cell(g.Want), cell(text), verdict)
	}
}

func (t *Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", t.Title, t.Conditions)
	base, _ := t.Row(t.Base)
	b.WriteString("| | p10 | p50 | p90 | p99 | CPU per call | calls/s |")
	rule := "\n| --- | --: | --: | --: | --: | --: | --: |"
	if t.Client {
		b.WriteString(" client's CPU |")
		rule += " --: |"
	}
	if base != nil {
		b.WriteString(" p50 to base | CPU to base |")
		rule += " --: | --: |"
	}
	b.WriteString(rule + "\n")
	for _, row := range t.Rows {
		t.row(b, row, base)
	}
}

func (t *Table) row(b *strings.Builder, row Row, base *measure.Series) {
	s := row.Series
	columns := 6
	if base != nil {
		columns += 2
	}
	if t.Client {
		columns++
	}
	why := row.Missing
	if s != nil && s.Err != nil {
		why = "failed: " + s.Err.Error()
	}
	if s == nil || s.Err != nil {
		fmt.Fprintf(b, "| %s | %s |%s\n", cell(row.Name), cell("not measured here: "+why), strings.Repeat(" |", columns-1))
		return
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %.0f |", cell(row.Name),
		duration(s.Of(measure.P10)), duration(s.Of(measure.P50)), duration(s.Of(measure.P90)), duration(s.Of(measure.P99)),
		duration(s.Of(measure.CPU)), s.PerSecond())
	if t.Client {
		fmt.Fprintf(b, " %s |", duration(s.Of(measure.Here)))
	}
	switch {
	case base == nil:
	case row.Name == t.Base:
		b.WriteString(" base | base |")
	default:
		fmt.Fprintf(b, " %s | %s |", multiple(s.To(base, measure.P50)), multiple(s.To(base, measure.CPU)))
	}
	b.WriteString("\n")
}

func (r *Results) idle(b *strings.Builder) {
	if len(r.Memory) == 0 {
		return
	}
	b.WriteString("\n## Idle memory\n\nOne second after the first tools/list, of the server and all that it started.\n\n| | PSS | private |\n| --- | --: | --: |\n")
	for _, m := range r.Memory {
		if m.Missing != "" {
			fmt.Fprintf(b, "| %s | %s | |\n", cell(m.Name), cell("not measured here: "+m.Missing))
			continue
		}
		fmt.Fprintf(b, "| %s | %.1f MiB | %.1f MiB |\n", cell(m.Name), float64(m.Memory.PSS)/(1<<20), float64(m.Memory.Private)/(1<<20))
	}
}

func (r *Results) curves(b *strings.Builder) {
	if len(r.Curves) == 0 {
		return
	}
	b.WriteString("\n## How the cost grows\n")
	for _, c := range r.Curves {
		fmt.Fprintf(b, "\n![%s](%s)\n\n| %s |", c.Title, c.File(), cell(c.X))
		xs := c.xs()
		for _, x := range xs {
			fmt.Fprintf(b, " %s |", number(x))
		}
		b.WriteString("\n| --- |" + strings.Repeat(" --: |", len(xs)) + "\n")
		for _, l := range c.Lines {
			fmt.Fprintf(b, "| %s |", cell(l.label(c.Y)))
			for _, x := range xs {
				y, ok := l.at(x)
				if !ok {
					b.WriteString(" |")
					continue
				}
				fmt.Fprintf(b, " %s |", number(y))
			}
			b.WriteString("\n")
		}
	}
}

func (l Line) label(unit string) string {
	if l.Missing != "" {
		return l.Name + ": not measured here: " + l.Missing
	}
	return l.Name + ", " + unit
}

// cell returns text that ends no cell of a table.
func cell(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "|", `\|`)), " ")
}

// duration writes a duration to three digits or so.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.2f µs", micros(d))
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", micros(d))
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", micros(d))
	}
	return fmt.Sprintf("%.1f ms", micros(d)/1000)
}

// multiple writes a ratio with its quartiles.
func multiple(q measure.Ratio) string {
	if q.Rounds == 0 {
		return "?"
	}
	return fmt.Sprintf("%s (%s–%s)", factor(q.Median), factor(q.Low), factor(q.High))
}

func factor(v float64) string {
	switch {
	case v < 0.1:
		return fmt.Sprintf("x%.2g", v)
	case v < 10:
		return fmt.Sprintf("x%.2f", v)
	case v < 100:
		return fmt.Sprintf("x%.1f", v)
	}
	return fmt.Sprintf("x%.0f", v)
}

func number(v float64) string {
	switch {
	case v >= 100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
