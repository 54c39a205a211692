package trust

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/term"
)

// ChangedError is a package that is not what was trusted under its name.
type ChangedError struct {
	Name    string // as served
	Package string // its own name
	Source  string // where it is
	Trusted Record // what was trusted
	// Changes names what is different, for example "module" or "hints of search".
	Changes []string
	Wider   bool   // it claims less, or asks for more, than what was trusted
	Diff    string // for people: what became wider, and a unified diff; escaped, of limited length
}

func newChangedError(was, now Record) *ChangedError {
	// A grant is no property of the package.
	was.Granted, now.Granted = Grants{}, Grants{}
	return &ChangedError{
		Name: now.Name, Package: now.Package, Source: now.Source, Trusted: was,
		Changes: changes(was, now), Wider: len(wider(was, now)) > 0, Diff: describe(was, now),
	}
}

// Error returns one line: the name, what has changed, and the mend.
func (e *ChangedError) Error() string {
	const most = 6
	what := strings.Join(e.Changes[:min(len(e.Changes), most)], ", ")
	if more := len(e.Changes) - most; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	if e.Wider {
		what += " (wider than before)"
	}
	mend := approve(e.Source, e.Name, e.Package)
	if e.Source != e.Trusted.Source {
		return fmt.Sprintf("package %s at %s: not the package of this name that is trusted, from %s, but differs in %s; give it a name of its own with as: in the configuration, or %s",
			e.Name, term.Line(e.Source), term.Line(e.Trusted.Source), what, mend)
	}
	return fmt.Sprintf("package %s at %s: changed since it was trusted on %s: %s; %s; or use --trust-changes while developing",
		e.Name, term.Line(e.Source), e.Trusted.Approved.Format("2006-01-02"), what, mend)
}

// approve returns the mend that makes a package trusted.
func approve(source, name, own string) string {
	as := ""
	if name != own {
		as = " --as " + name
	}
	return fmt.Sprintf("review it with sandboxd approve %s%s --dry-run, and approve it without --dry-run", word(source), as)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:\\@%+=,-]+$`)

// word returns s as one word of a command line.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(term.Line(s), "'", `'\''`) + "'"
}

// changes names what is different.
func changes(was, now Record) []string {
	var list []string
	add := func(what string, changed bool) {
		if changed {
			list = append(list, what)
		}
	}
	add("module", was.ModuleDigest != now.ModuleDigest)
	add("files", was.FilesDigest != now.FilesDigest)
	add("arguments", !slices.Equal(was.Args, now.Args))
	add("reseeds", was.Reseeds != now.Reseeds)
	add("package name", was.Package != now.Package)
	list = append(list, toolChanges(was.Tools, now.Tools)...)
	add("requests", !slices.Equal(requestLines(was.Requests), requestLines(now.Requests)))
	add("version", was.Version != now.Version)
	add("ABI", was.ABI != now.ABI)
	add("relaxations", !slices.Equal(relaxationLines(was.Relaxations), relaxationLines(now.Relaxations)))
	add("limits", was.Limits != now.Limits)
	add("labels", !maps.Equal(was.Labels, now.Labels))
	add("warmup", !slices.Equal(warmupLines(was.Warmup), warmupLines(now.Warmup)))
	if len(list) == 0 {
		list = append(list, "order of tools or form of the definition")
	}
	return list
}

// toolChanges names what is different in the tools, of each kind in one phrase.
func toolChanges(was, now []ToolPin) []string {
	kinds := []string{"hints of", "new tool", "missing tool", "description of", "schema of", "idempotency key of", "client capabilities of"}
	names := make([][]string, len(kinds))
	for p := range pairs(was, now) {
		for i, is := range []bool{
			p.both() && p.was.Annotations != p.now.Annotations,
			p.was == nil,
			p.now == nil,
			p.both() && (p.was.Title != p.now.Title || p.was.Description != p.now.Description),
			p.both() && (string(p.was.InputSchema) != string(p.now.InputSchema) || string(p.was.OutputSchema) != string(p.now.OutputSchema)),
			p.both() && p.was.IdempotencyKeyArgument != p.now.IdempotencyKeyArgument,
			p.both() && !slices.Equal(p.was.ClientCapabilities, p.now.ClientCapabilities),
		} {
			if is {
				names[i] = append(names[i], p.name)
			}
		}
	}
	var list []string
	for i, kind := range kinds {
		if len(names[i]) > 0 {
			list = append(list, kind+" "+few(names[i]))
		}
	}
	return list
}

// few returns the first names of a list, and how many more there are.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// pair is a tool in two records; nil where it is not in one.
type pair struct {
	name     string
	was, now *ToolPin
}

func (p pair) both() bool { return p.was != nil && p.now != nil }

// pairs returns the tools of two records, sorted by name as both are.
func pairs(was, now []ToolPin) func(yield func(pair) bool) {
	return func(yield func(pair) bool) {
		for len(was) > 0 || len(now) > 0 {
			var p pair
			switch {
			case len(now) == 0 || len(was) > 0 && was[0].Name < now[0].Name:
				p, was = pair{was[0].Name, &was[0], nil}, was[1:]
			case len(was) == 0 || now[0].Name < was[0].Name:
				p, now = pair{now[0].Name, nil, &now[0]}, now[1:]
			default:
				p, was, now = pair{was[0].Name, &was[0], &now[0]}, was[1:], now[1:]
			}
			if !yield(p) {
				return
			}
		}
	}
}
