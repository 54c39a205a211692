package undo

import (
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// String returns the diff as lines of text: one an effect, with its difference
// below. Contents are in it as they are, control characters too.
func (d *Diff) String() string {
	var b strings.Builder
	for _, it := range d.Items {
		b.WriteString(it.line() + "\n")
		b.WriteString(it.Text)
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", d.More)
	}
	return b.String()
}

// line returns one line about an effect.
func (it Item) line() string {
	var about []string
	switch {
	case it.Was != nil && it.Left != nil && *it.Was != *it.Left && it.Detail != detailTimes:
		about = append(about, fmt.Sprintf("%d to %d bytes", *it.Was, *it.Left))
	case it.Left != nil && it.Detail != detailTimes:
		about = append(about, bytesOf(*it.Left))
	case it.Was != nil && it.Left == nil:
		about = append(about, bytesOf(*it.Was))
	}
	if it.Detail != "" {
		about = append(about, quoted(it.Detail))
	}
	if it.Note != "" {
		about = append(about, string(it.Note))
	}
	line := it.Verb.String()
	if it.Kind != capabilities.KindFile {
		line += " " + string(it.Kind)
	}
	line += " " + quoted(it.Object)
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	return line
}

func bytesOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
