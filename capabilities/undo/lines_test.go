package undo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// patched applies a unified diff to a text. It is strict about every number.
func patched(t tester, a, diff string) string {
	t.Helper()
	old := lines(a)
	var out []string
	at := 0
	list := lines(diff)
	if len(list) == 0 {
		return a
	}
	list = list[2:]
	for len(list) > 0 {
		var i, in, j, jn int
		header := list[0]
		if _, err := fmt.Sscanf(fullSpans(header), "@@ -%d,%d +%d,%d @@", &i, &in, &j, &jn); err != nil {
			t.Fatalf("header %q: %v", header, err)
		}
		list = list[1:]
		if in > 0 {
			i--
		}
		if jn > 0 {
			j--
		}
		out = append(out, old[at:i]...)
		at = i
		if len(out) != j {
			t.Fatalf("%q: at %d of the new text", header, len(out))
		}
		for len(list) > 0 && !strings.HasPrefix(list[0], "@@") {
			mark, line := list[0][0], list[0][1:]
			list = list[1:]
			if len(list) > 0 && strings.HasPrefix(list[0], "\\") {
				line, list = strings.TrimSuffix(line, "\n"), list[1:]
			}
			if mark != '+' {
				if old[at] != line {
					t.Fatalf("line %d is %q, not %q", at, old[at], line)
				}
				at, in = at+1, in-1
			}
			if mark != '-' {
				out, jn = append(out, line), jn-1
			}
		}
		if in != 0 || jn != 0 {
			t.Fatalf("%q: %d and %d lines too few", header, in, jn)
		}
	}
	return strings.Join(append(out, old[at:]...), "")
}

// fullSpans writes lengths of one line that a header leaves out.
func fullSpans(header string) string {
	f := strings.Fields(header)
	for i := 1; i < 3 && i < len(f); i++ {
		if !strings.Contains(f[i], ",") {
			f[i] += ",1"
		}
	}
	return strings.Join(f, " ")
}

var genText = rapid.Custom(func(t *rapid.T) string {
	list := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "@@ -1 +1 @@", "\\ x", "--- a"}), 0, 30).Draw(t, "lines")
	s := strings.Join(list, "\n")
	if rapid.Bool().Draw(t, "end") {
		s += "\n"
	}
	return s
})

// A diff leads from the one text to the other, and replaces the fewest lines.
func TestUnifiedPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genText.Draw(t, "a"), genText.Draw(t, "b")
		d, ok := unified("a", "b", a, b)
		if !ok {
			t.Fatal("too large")
		}
		marked := ""
		for _, l := range lines(d) {
			if strings.HasPrefix(l, "@@") || strings.HasPrefix(l, "\\") || strings.HasPrefix(l, "--- a\n") && marked == "" {
				continue
			}
			marked += l[:1]
		}
		if got := patched(t, a, d); got != b {
			t.Fatalf("got %q, want %q:\n%s", got, b, d)
		}
		x, y := lines(a), lines(b)
		if got, want := strings.Count(marked, "-")+strings.Count(marked, "+"), len(x)+len(y)-2*common(x, y); d != "" && got-1 != want {
			t.Fatalf("%d edits, want %d:\n%s", got-1, want, d)
		}
	})
}

// common returns the length of the longest common subsequence.
func common(x, y []string) int {
	row := make([]int, len(y)+1)
	for i := range x {
		diagonal := 0
		for j := range y {
			up := row[j+1]
			if x[i] == y[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diagonal = up
		}
	}
	return row[len(y)]
}

// The format is that of diff(1), where the shortest difference is unique.
func TestUnifiedLikeDiff(t *testing.T) {
	diff, err := exec.LookPath("diff")
	if err != nil {
		t.Skip("no diff program")
	}
	long := strings.Repeat("x\n", 3)
	for _, c := range [][2]string{
		{"", "a\n"},
		{"a\n", ""},
		{"a", "a\n"},
		{"a\nb\n", "a\nc\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n"},
		{"a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"},
		{"a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n"},
		{long + "a\n" + long, long + long},
		{"a\r\n", "a\n"},
		{"only\n", "other"},
	} {
		dir := t.TempDir()
		for i, name := range []string{"a", "b"} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(c[i]), 0o600))
		}
		out, _ := exec.CommandContext(t.Context(), diff, "-u", "--label", "a", "--label", "b", filepath.Join(dir, "a"), filepath.Join(dir, "b")).Output()
		got, ok := unified("a", "b", c[0], c[1])
		if !ok || got != string(out) {
			t.Errorf("%q:\n%swant\n%s", c, got, out)
		}
	}
}

// Texts that are as hard as possible take a bounded time, and still lead from the
// one to the other: this test ends.
func TestUnifiedHostile(t *testing.T) {
	numbers := func(n, mod int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i%mod)
		}
		return b.String()
	}
	for name, c := range map[string][2]string{
		"few lines often":   {numbers(20_000, 1), numbers(19_000, 2)},
		"other period":      {numbers(20_000, 2), numbers(20_000, 3)},
		"nothing in common": {numbers(20_000, 20_000), strings.ReplaceAll(numbers(20_000, 20_000), "\n", "!\n")},
		"ends":              {strings.Repeat("a\n", 131_072), "b\n" + strings.Repeat("a\n", 131_071)},
		"all new":           {"", strings.Repeat("\n", 262_144)},
	} {
		d, ok := unified("a", "b", c[0], c[1])
		if !ok || patched(t, c[0], d) != c[1] {
			t.Errorf("%s: wrong", name)
		}
	}
	if _, ok := unified("a", "b", numbers(maxLines+10, 7), numbers(maxLines, 3)); ok {
		t.Error("too many lines were compared")
	}
}
