package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/runtime"
)

// print writes the report for a person.
func (r *report) print(a *app) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (abi %s)\n", r.Name, r.Version, r.ABI)
	fmt.Fprintf(&b, "  package     %s\n  module      %s (%d bytes)\n  definition  %s\n", r.Digest, r.ModuleDigest, r.ModuleBytes, r.DefinitionDigest)
	fmt.Fprintf(&b, "  instances   %s\n", term.Line(r.Instances.line()))
	r.printTools(&b)
	section(&b, "requests", r.Requests)
	section(&b, "relaxations (in force once they are approved)", r.Relaxations)
	section(&b, "volumes on this host", r.volumeLines())
	section(&b, "imports", r.importLines())
	section(&b, "proved", proofLines(r.Proved))
	section(&b, "flows", r.flowLines())
	section(&b, "warnings", r.Warnings)
	_, err := io.WriteString(a.stdout, term.Text(b.String()))
	return err
}

// line says what a call gets, and why that is no more than a new instance.
func (i instances) line() string {
	is := map[runtime.Kind]string{
		runtime.KindInitialized:  "put back after each call to how start-up code left them",
		runtime.KindInstantiated: "put back after each call to how they were before _start",
		runtime.KindStdin:        "put back after each call to where they first read standard input",
		runtime.KindNew:          "a new one for each call",
	}[i.Kind]
	line := string(i.Kind) + ": " + is
	if i.Reason != "" {
		line += ", because: " + string(i.Reason)
	}
	if i.Detail != "" {
		line += " (" + i.Detail + ")"
	}
	return line
}

func section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		lines = []string{"none"}
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", term.Line(l)) // an author's names forge no lines
	}
}

// printTools writes the hints as a table: a cell is declared, then effective
// and enforced where they differ from what is before them.
func (r *report) printTools(w io.Writer) {
	fmt.Fprintln(w, "\ntools (hints: as declared -> as meant by the specification -> as enforced and listed)")
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprint(t, "  tool")
	for h := range capabilities.Hints() {
		fmt.Fprintf(t, "\t%s", h)
	}
	fmt.Fprintln(t)
	for _, x := range r.Tools {
		d, e, l := x.Declared, x.Effective, x.Enforced
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", x.Name,
			cell(d.ReadOnly, e.ReadOnly, l.ReadOnly),
			cell(d.Destructive, e.Destructive, l.Destructive),
			cell(d.Idempotent, e.Idempotent, l.Idempotent),
			cell(d.OpenWorld, e.OpenWorld, l.OpenWorld))
	}
	t.Flush() // into a strings.Builder, which does not fail
	for _, x := range r.Tools {
		for _, n := range x.Notes {
			fmt.Fprintf(w, "  %s: %s\n", x.Name, n)
		}
	}
}

func cell(declared capabilities.Tri, effective, listed bool) string {
	s := declared.String()
	if declared != capabilities.TriOf(effective) {
		s += fmt.Sprintf(" -> %t", effective)
	}
	if effective != listed {
		s += fmt.Sprintf(" -> %t", listed)
	}
	return s
}

func (r *report) volumeLines() []string {
	var lines []string
	for _, v := range r.Volumes {
		l := fmt.Sprintf("%s at %s: %s", v.Name, v.Path, v.Folder)
		if v.Managed {
			l = fmt.Sprintf("%s at %s: managed volume %s", v.Name, v.Path, v.Store)
		}
		lines = append(lines, l)
	}
	return lines
}

func (r *report) importLines() []string {
	var lines []string
	for _, i := range r.Imports {
		lines = append(lines, fmt.Sprintf("%s: %s", i.Module, strings.Join(i.Names, " ")))
	}
	return lines
}

func proofLines(p verify.Proof) []string {
	var lines []string
	if p.ReadOnly {
		lines = append(lines, "read-only: it requests nothing that it could write to")
	}
	if p.Closed {
		lines = append(lines, "closed: it requests no network")
	}
	return lines
}

func (r *report) flowLines() []string {
	var lines []string
	for _, f := range r.Flows {
		place := "volume " + f.Volume
		if f.Keys {
			place = "keys"
		}
		l := fmt.Sprintf("%s (closed) can leave data in %s that %s (open) can read", f.From, place, f.To)
		if r.Proved.Closed {
			l += "; the package requests no network now"
		}
		lines = append(lines, l)
	}
	return lines
}
