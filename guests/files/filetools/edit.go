package filetools

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type edit struct {
	OldText string `json:"oldText" description:"Text to search for - must match exactly"`
	NewText string `json:"newText" description:"Text to replace with"`
}

type editInput struct {
	Path   string `json:"path"`
	Edits  []edit `json:"edits"`
	DryRun bool   `json:"dryRun,omitempty" default:"false" description:"Preview changes using git-style diff format"`
}

// editFile applies edits one after the other and answers with the difference.
func editFile(_ *sdk.Call, in editInput) (content, error) {
	name, err := validate(in.Path)
	if err != nil {
		return content{}, err
	}
	text, err := readText(name)
	if err != nil {
		return content{}, err
	}
	before := unixLines(text)
	after := before
	for _, e := range in.Edits {
		var ok bool
		if after, ok = e.apply(after); !ok {
			return content{}, refuse("Could not find exact match for edit:\n%s", e.OldText)
		}
	}
	diff := patch(name, before, after)
	fence := "```"
	for strings.Contains(diff, fence) {
		fence += "`"
	}
	if !in.DryRun {
		if err := replace(name, after); err != nil {
			return content{}, err
		}
	}
	return content{fence + "diff\n" + diff + fence + "\n\n"}, nil
}

// apply replaces the first place where the old text is, or else the first lines that
// are the same but for the white space around them.
func (e edit) apply(text string) (string, bool) {
	old, replacement := unixLines(e.OldText), unixLines(e.NewText)
	if strings.Contains(text, old) {
		return strings.Replace(text, old, replacement, 1), true
	}
	have, want := strings.Split(text, "\n"), strings.Split(old, "\n")
	for i := range len(have) - len(want) + 1 {
		if slices.EqualFunc(have[i:i+len(want)], want, func(a, b string) bool { return trim(a) == trim(b) }) {
			lines := indented(strings.Split(replacement, "\n"), want, indent(have[i]))
			return strings.Join(slices.Concat(have[:i], lines, have[i+len(want):]), "\n"), true
		}
	}
	return "", false
}

// indented gives new lines the indent that the place has: the first line all of it,
// the others as much more as they are indented beyond the line that they replace.
func indented(lines, old []string, place string) []string {
	out := slices.Clone(lines)
	for j, line := range lines {
		bare := strings.TrimLeftFunc(line, isSpace)
		if j == 0 {
			out[j] = place + bare
			continue
		}
		was := ""
		if j < len(old) {
			was = indent(old[j])
		}
		if is := indent(line); was != "" && is != "" {
			out[j] = place + strings.Repeat(" ", max(0, len([]rune(is))-len([]rune(was)))) + bare
		}
	}
	return out
}

// isSpace is what JavaScript takes for white space (ECMA-262, 22.1.3.32).
func isSpace(r rune) bool {
	return strings.ContainsRune("\t\n\v\f\r\u2028\u2029\ufeff", r) || unicode.Is(unicode.Zs, r)
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func indent(s string) string { return s[:len(s)-len(strings.TrimLeftFunc(s, isSpace))] }

// replace writes a file beside the old one and renames it over it, so that nobody
// sees half of it.
func replace(name, text string) (err error) {
	var token [16]byte
	rand.Read(token[:])
	temp := name + "." + hex.EncodeToString(token[:]) + ".tmp"
	defer func() {
		if err == nil {
			return
		}
		if gone := os.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return failed("open", temp, err)
	}
	if err := os.Rename(temp, name); err != nil {
		return failed("rename", temp+"' -> '"+name, err)
	}
	return nil
}
