package filetools

import (
	"fmt"
	"strings"
)

// around is how many unchanged lines are shown around a change.
const around = 4

// patch returns the difference of two texts as a unified diff, byte for byte that of
// npm's diff 8 (createTwoFilesPatch).
func patch(name, before, after string) string {
	old, now := splitLines(before), splitLines(after)
	var b strings.Builder
	fmt.Fprintf(&b, "Index: %s\n%s\n--- %s\toriginal\n+++ %s\tmodified\n", name, strings.Repeat("=", 67), name, name)
	for _, h := range hunks(runs(old, now), old, now) {
		h.write(&b)
	}
	return b.String()
}

// splitLines returns lines with their line breaks.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// hunk is a part of the difference: lines with a mark each.
type hunk struct {
	old, now           int // where it begins, from 1
	oldLines, nowLines int
	lines              []string
}

func (h *hunk) add(mark string, lines []string) {
	for _, line := range lines {
		h.lines = append(h.lines, mark+line)
	}
	if mark != "+" {
		h.oldLines += len(lines)
	}
	if mark != "-" {
		h.nowLines += len(lines)
	}
}

// hunks shows runs with the lines around them; changes with few lines between them
// are one.
func hunks(rs []run, old, now []string) []*hunk {
	var out []*hunk
	var h *hunk
	i, j := 0, 0
	for k, r := range rs {
		switch r.kind {
		case same:
			lines := old[i : i+r.n]
			i, j = i+r.n, j+r.n
			switch {
			case h == nil:
			case r.n <= 2*around && k < len(rs)-1:
				h.add(" ", lines)
			default:
				h.add(" ", lines[:min(around, r.n)])
				h = nil
			}
			continue
		case removed, added:
		}
		if h == nil {
			n := 0
			if k > 0 {
				n = min(around, rs[k-1].n)
			}
			h = &hunk{old: i - n + 1, now: j - n + 1}
			h.add(" ", old[i-n:i])
			out = append(out, h)
		}
		if r.kind == removed {
			h.add("-", old[i:i+r.n])
			i += r.n
		} else {
			h.add("+", now[j:j+r.n])
			j += r.n
		}
	}
	return out
}

func (h *hunk) write(b *strings.Builder) {
	old, now := h.old, h.now
	if h.oldLines == 0 {
		old--
	}
	if h.nowLines == 0 {
		now--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", old, h.oldLines, now, h.nowLines)
	for _, line := range h.lines {
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
