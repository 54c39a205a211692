package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/term"
)

// How many lines of a guest's log are shown at once: the first, which say what
// it died of, and the last, which say what it did before.
const (
	shownHead = 10
	shownTail = 40
)

// printLog shows what a guest wrote to standard error, to the operator: all of it
// with --verbose.
func (a *app) printLog(log []byte) {
	text := strings.TrimRight(string(log), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if more := len(lines) - shownHead - shownTail; more > 0 && !a.verbose {
		between := fmt.Sprintf("… %d lines between; -v shows them", more)
		lines = slices.Concat(lines[:shownHead], []string{between}, lines[len(lines)-shownTail:])
	}
	for _, l := range lines {
		fmt.Fprintf(a.stderr, "log: %s\n", term.Text(l))
	}
}

// lastWords returns the line of a guest's log that says most about its end: that
// of a panic in Go, else the last one.
func lastWords(log string) string {
	last := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}
