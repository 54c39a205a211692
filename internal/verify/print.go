package verify

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
)

// verdicts are all verdicts in the order in which they are counted out.
var verdicts = []Verdict{Proved, Observed, UnderClaimed, NotChecked, Broken}

// Print writes the report for a person. It is safe for a terminal.
func (r *Report) Print(out io.Writer) error {
	var b strings.Builder
	end := "honest"
	if !r.Honest {
		end = "not honest"
	}
	fmt.Fprintf(&b, "%s %s: %s\n", r.Package, r.Version, end)
	count := r.Count()
	var counts []string
	for _, v := range verdicts {
		if count[v] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	tools := "tools"
	if len(r.Tools) == 1 {
		tools = "tool"
	}
	fmt.Fprintf(&b, "%d %s; hints: %s\n", len(r.Tools), tools, strings.Join(counts, ", "))
	if len(r.Relaxations) > 0 {
		fmt.Fprintln(&b, "relaxations in force, as far as the package requests them:")
		for _, l := range r.Relaxations {
			fmt.Fprintf(&b, "  %s\n", term.Line(l))
		}
	}
	for _, t := range r.Tools {
		t.print(&b)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t *Tool) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", term.Line(t.Name))
	table := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for _, h := range t.Hints {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", h.Hint, h.declared(), h.Verdict, term.Line(h.Reason))
	}
	table.Flush() // into a strings.Builder, which does not fail
	for _, h := range t.Hints {
		for _, l := range h.Relaxations {
			fmt.Fprintf(w, "  %s needs the relaxation: %s\n", h.Hint, term.Line(l))
		}
		c := h.Counterexample
		if c == nil {
			continue
		}
		fmt.Fprintf(w, "  broken %s: %s %s %s\n", h.Hint, c.Call, term.Line(t.Name), term.JSON(c.Arguments))
		if c.Detail != "" {
			fmt.Fprintf(w, "    %s\n", term.Line(c.Detail))
		}
		fmt.Fprintf(w, "    again: %s\n", term.Line(c.Command))
	}
}

// declared returns what is declared, or what holds where nothing is.
func (h *Hint) declared() string {
	if h.Declared == capabilities.Unset {
		return fmt.Sprintf("%t by default", h.Effective)
	}
	return h.Declared.String()
}

// Suggestions writes the annotations that are suggested as a part of a manifest,
// with what each hint that is not declared so stands on.
func (r *Report) Suggestions(out io.Writer) error {
	var b strings.Builder
	for _, t := range r.Tools {
		if t.Suggested != nil {
			t.suggestion(&b)
		}
	}
	head := "\n# Suggested: annotations that claim all that was seen, and nothing that was broken.\ntools:\n"
	if b.Len() == 0 {
		head = "\n# Suggested: nothing else than what is declared.\n"
	}
	_, err := io.WriteString(out, head+b.String())
	return err
}

// What readers of YAML take for a text without quotes, and what some of them do not.
var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	notNames  = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

func (t *Tool) suggestion(w io.Writer) {
	name := t.Name
	if !plainName.MatchString(name) || slices.Contains(notNames, strings.ToLower(name)) {
		name = `"` + name + `"` // no tool's name has a character that needs an escape
	}
	fmt.Fprintf(w, "  - name: %s\n    annotations:\n", name)
	for _, h := range t.Hints {
		value := *hintOf(t.Suggested, h.Hint)
		if value == capabilities.Unset {
			continue
		}
		line := fmt.Sprintf("      %s: %s", h.Hint, value)
		reason := h.Reason
		if because := t.because[h.Hint]; because != "" {
			reason = because
		}
		if value != h.Declared {
			line += " # " + term.Line(reason)
		}
		fmt.Fprintln(w, line)
	}
}
