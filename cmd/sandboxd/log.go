package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

type logCmd struct {
	Violations bool   `help:"Only violations."`
	Tool       string `placeholder:"T" help:"Only this tool."`
	JSON       bool   `name:"json" help:"A JSON object a line."`
	Follow     bool   `short:"f" help:"Go on with what is written later, until an interrupt."`
	Verify     bool   `help:"Check that nothing was taken out of the log (not supported yet)."`
}

func (logCmd) Help() string {
	return `Examples:

    sandboxd log --violations
    sandboxd log --tool add_note --json
    sandboxd log --follow`
}

// Run prints the audit log, oldest record first.
func (c *logCmd) Run(a *app) error {
	if c.Verify {
		return fmt.Errorf("log --verify: %w", errNotYet)
	}
	each := func(r audit.Record) error { return c.print(a, r) }
	f := audit.Filter{Violations: c.Violations, Tool: c.Tool}
	var skipped int
	var err error
	if c.Follow {
		skipped, err = audit.Follow(a.ctx, a.state, f, each)
	} else {
		skipped, err = audit.Read(a.state, f, each)
	}
	if skipped > 0 {
		fmt.Fprintf(a.stderr, "note: skipped %d lines of the log that are not records, as a crash leaves them\n", skipped)
	}
	return err
}

func (c *logCmd) print(a *app, r audit.Record) error {
	if c.JSON {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", term.JSON(b))
		return err
	}
	s := logLine(r)
	if r.Type == audit.TypeViolation {
		s = a.paint(a.stdout, red, s)
	}
	_, err := fmt.Fprintln(a.stdout, s)
	return err
}

// logLine returns a record as one line for a person.
func logLine(r audit.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-9s  %s/%s", r.Time.Local().Format(time.DateTime), r.Type, term.Line(r.Package), term.Line(r.Tool))
	switch r.Type {
	case audit.TypeViolation:
		hint := ""
		if r.Hint != nil {
			hint = r.Hint.String()
		}
		fmt.Fprintf(&b, "  %s broken by %s of %s (%s)", hint, r.Operation, term.Line(r.Object), r.Phase)
	case audit.TypeDenial:
		fmt.Fprintf(&b, "  %s: %s %s: %s", r.Capability, r.Operation, term.Line(r.Object), r.Errno)
	case audit.TypeCall:
		fmt.Fprintf(&b, "  %s", r.Outcome)
		if r.Committed != nil {
			fmt.Fprintf(&b, ", %s%s", saved(&runtime.Result{Outcome: r.Outcome, Committed: *r.Committed, Effects: r.Effects}, false), effectList(r.Effects))
		}
		if r.Error != "" {
			fmt.Fprintf(&b, "; %s", term.Line(firstLine(r.Error)))
		}
	}
	fmt.Fprintf(&b, "  %s", r.CallID)
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
