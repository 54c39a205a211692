package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

type logCmd struct {
	CallID     string `arg:"" optional:"" name:"call-id" help:"Show everything of this call."`
	Violations bool   `help:"Only violations."`
	Tool       string `placeholder:"T" help:"Only this tool."`
	JSON       bool   `name:"json" help:"A JSON object a line."`
	Follow     bool   `short:"f" help:"Go on with what is written later, until an interrupt."`
	Verify     bool   `help:"Check that no record was changed, removed or put elsewhere. Exit status 1 where one was."`
	Heads      string `placeholder:"FILE" help:"With --verify, also against what an earlier --verify --json printed."`
}

func (logCmd) Help() string {
	return `Examples:

    sandboxd log --violations
    sandboxd log --tool add_note --json
    sandboxd log --follow
    sandboxd log --verify
    sandboxd log K6CJ3V5Q3ZCXW5JQYB2B6BJ4TF`
}

// Run prints the audit log, oldest record first.
func (c *logCmd) Run(a *app, open storeOpener) error {
	if c.Heads != "" && !c.Verify {
		return errors.New("log --heads: only with --verify; add it")
	}
	return a.withStore(open, func(s store.Store) error {
		if c.Verify {
			return c.verify(a, s)
		}
		return c.show(a, s)
	})
}

// show prints the records that are asked for.
func (c *logCmd) show(a *app, j store.Journal) error {
	n := 0
	each := func(r audit.Record) error {
		n++
		return c.print(a, r)
	}
	f := audit.Filter{Violations: c.Violations, Tool: c.Tool, CallID: c.CallID}
	var skipped int
	var err error
	if c.Follow {
		skipped, err = audit.Follow(a.ctx, j, f, each, func() {
			fmt.Fprintln(a.stderr, "note: records were pruned before they were read")
		})
	} else {
		skipped, err = audit.Read(a.ctx, j, f, each)
	}
	if skipped > 0 {
		fmt.Fprintf(a.stderr, "note: skipped %d records that are not as the audit log writes them; see log --verify\n", skipped)
	}
	switch {
	case err != nil || n > 0 || c.Follow:
		return err
	case c.CallID != "":
		return fmt.Errorf("call %s: no record of it in the audit log of %s", term.Line(c.CallID), a.state)
	case f == audit.Filter{}:
		fmt.Fprintln(a.stderr, "no records yet")
	default:
		fmt.Fprintln(a.stderr, "no records that match")
	}
	return nil
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
		s = a.paint(a.stdout, term.Red, s)
	}
	if c.CallID != "" {
		s += detailLines(r)
	}
	_, err := fmt.Fprintln(a.stdout, s)
	return err
}

// logLine returns a record as one line for a person.
func logLine(r audit.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-9s  %s", r.Time.Local().Format("2006-01-02 15:04:05Z07:00"), r.Type, term.Line(r.Package))
	if r.Tool != "" && r.Package != "" {
		b.WriteString("/") // an undo of no call there is belongs to no package
	}
	b.WriteString(term.Line(r.Tool))
	if r.Principal != "" && r.Principal != runtime.LocalPrincipal {
		fmt.Fprintf(&b, " by %s", term.Line(r.Principal))
	}
	switch r.Type {
	case audit.TypeViolation:
		hint := ""
		if r.Hint != nil {
			hint = r.Hint.String()
		}
		fmt.Fprintf(&b, "  %s broken by %s of %s (%s)", hint, r.Operation, term.Line(r.Object), r.Phase)
	case audit.TypeDenial:
		fmt.Fprintf(&b, "  %s: %s %s: %s", r.Capability, r.Operation, term.Line(r.Object), r.Errno)
	case audit.TypeLoad:
		fmt.Fprintf(&b, "  does not load: %s: %s", r.Phase, term.Line(firstLine(r.Error)))
	case audit.TypeApprove:
		fmt.Fprintf(&b, "  by %s, %s", r.By, r.ModuleDigest)
	case audit.TypeConfig:
		if r.Error == "" {
			b.WriteString("taken")
		} else {
			fmt.Fprintf(&b, "not taken: %s", term.Line(firstLine(r.Error)))
		}
	case audit.TypeCall:
		b.WriteString(callText(r))
	case audit.TypeOutbox:
		b.WriteString(outboxText(r))
	}
	if said := lastWords(r.Stderr); said != "" && r.Outcome != runtime.OK {
		fmt.Fprintf(&b, "; log: %s", term.Line(said))
	}
	if r.CallID != "" {
		fmt.Fprintf(&b, "  %s", r.CallID)
	}
	return b.String()
}

// callText says how a call ended. One that went well and was not committed was
// a dry run.
func callText(r audit.Record) string {
	text := fmt.Sprintf("  %s", r.Outcome)
	if r.Committed != nil {
		result := &runtime.Result{Outcome: r.Outcome, Committed: *r.Committed, Partial: r.Partial, Effects: r.Effects}
		dry := r.Outcome == runtime.OK && !*r.Committed
		if dry && saved(result, true) == "nothing changed" {
			text += ", dry run"
		}
		text += ", " + saved(result, dry) + effectList(r.Effects)
	}
	if r.Error != "" {
		text += "; " + term.Line(firstLine(r.Error))
	}
	return text
}

// outboxText says what became of a message.
func outboxText(r audit.Record) string {
	became := term.Line(r.Event)
	if r.Event == "no-sink" {
		became = "waits, as nobody delivers there"
	}
	text := fmt.Sprintf("  message to %s %s", term.Line(r.Object), became)
	if r.Key != "" {
		text += ", key " + term.Line(r.Key)
	}
	if r.Attempts > 1 {
		text += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	if r.Error != "" {
		text += "; " + term.Line(firstLine(r.Error))
	}
	return text
}

// detailLines returns what the line of a record leaves out, each line indented.
func detailLines(r audit.Record) string {
	var b strings.Builder
	add := func(title, text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&b, "\n  %s: %s", title, term.Text(strings.TrimRight(line, "\n")))
		}
	}
	if r.DurationMS != nil {
		add("took", fmt.Sprintf("%.1f ms", *r.DurationMS))
	}
	for _, e := range r.Effects {
		add("effect", fmt.Sprintf("%s %s %s (%d bytes) %s", e.Verb, e.Kind, term.Line(e.Object), e.Bytes, term.Line(e.Detail)))
	}
	add("error", r.Error)
	if r.StderrCut {
		add("log", "… only the end was kept")
	}
	add("log", r.Stderr)
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
