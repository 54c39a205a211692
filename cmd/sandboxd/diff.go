package main

import (
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/term"
)

// printEffects prints what a call would leave: a line an effect, with the difference
// of a text below. Contents are the guest's.
func (a *app) printEffects(d *undo.Diff) {
	for line := range strings.Lines(term.Text(d.String())) {
		line = strings.TrimSuffix(line, "\n")
		if style := diffStyle(line); style != "" {
			line = a.paint(a.stderr, style, line)
		}
		fmt.Fprintln(a.stderr, line)
	}
}

// diffStyle returns how a line of a unified diff is painted, empty for plain.
func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return term.Bold
	case strings.HasPrefix(line, "@@"):
		return term.Cyan
	case strings.HasPrefix(line, "+"):
		return term.Green
	case strings.HasPrefix(line, "-"):
		return term.Red
	}
	return ""
}
