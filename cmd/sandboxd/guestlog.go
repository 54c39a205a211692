package main

import (
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/internal/term"
)

// shownLog bounds how many lines of a guest's log are shown at once.
const shownLog = 50

// printLog shows the last lines of what a guest wrote to standard error, to the
// operator: all of them with --verbose.
func (a *app) printLog(log []byte) {
	text := strings.TrimRight(string(log), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if more := len(lines) - shownLog; more > 0 && !a.verbose {
		fmt.Fprintf(a.stderr, "log: … %d lines before\n", more)
		lines = lines[more:]
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
