package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

// The texts below are for people. Each line is escaped, and no longer than
// maxLine runes and a prefix: what is longer goes on in the next line.
const maxLine = 160

// packageLines says what a package is.
func packageLines(r Record) []string {
	if r.Format == "" {
		return nil
	}
	ls := []string{
		line("package " + r.Package + " " + r.Version),
		line("abi " + string(r.ABI)),
		line("module " + r.ModuleDigest),
		line("definition " + r.DefinitionDigest),
	}
	if r.FilesDigest != "" {
		ls = append(ls, line("files "+r.FilesDigest))
	}
	ls = append(ls, nameLines("argument", r.Args)...)
	if r.Reseeds {
		ls = append(ls, "reseeds")
	}
	return ls
}

func requestLines(q tool.Requests) []string {
	var ls []string
	add := func(format string, args ...any) { ls = append(ls, term.Line(fmt.Sprintf(format, args...))) }
	for _, v := range q.Volumes {
		access := v.Access.String()
		if v.Access == capabilities.NoAccess {
			access = "as claimed"
		}
		add("volume %s at %s: read", v.Name, v.Path)
		if v.Access != capabilities.ReadAccess {
			add("volume %s at %s: %s", v.Name, v.Path, access)
		}
	}
	if q.KV {
		add("keys")
	}
	for _, s := range q.SQL {
		add("sql %s", s)
	}
	ls = append(ls, httpLines(q.HTTP)...)
	ls = append(ls, nameLines("service", q.Services)...)
	ls = append(ls, nameLines("outbox", q.Outbox)...)
	ls = append(ls, nameLines("env", q.Env)...)
	if q.SessionScratch > 0 {
		add("session scratch of %s", size(q.SessionScratch))
	}
	if q.Session {
		add("session")
	}
	if q.Setup {
		add("setup")
	}
	return ls
}

func httpLines(rs []tool.HTTPRequest) []string {
	or := func(list []string, empty string) string {
		if len(list) == 0 {
			return empty
		}
		return strings.Join(list, ",")
	}
	var ls []string
	for _, r := range rs {
		l := "http " + r.Host + " " + or(r.Methods, "any method") + " " + or(r.Paths, "any path")
		if r.Secret != "" {
			l += " with secret " + r.Secret
		}
		ls = append(ls, term.Line(l))
	}
	return ls
}

func nameLines(kind string, names []string) []string {
	var ls []string
	for _, n := range names {
		ls = append(ls, term.Line(kind+" "+n))
	}
	return ls
}

func relaxationLines(r tool.Relaxations) []string {
	ls := r.Lines()
	for i, l := range ls {
		ls[i] = term.Line(l)
	}
	return ls
}

func grantLines(g Grants) []string {
	ls := httpLines(g.HTTP)
	ls = append(ls, nameLines("outbox", g.Outbox)...)
	ls = append(ls, nameLines("service", g.Services)...)
	ls = append(ls, nameLines("env", g.Env)...)
	if g.Setup {
		ls = append(ls, "setup")
	}
	for _, l := range relaxationLines(g.Relaxations) {
		ls = append(ls, "relaxation "+l)
	}
	return ls
}

func limitLines(l tool.Limits) []string {
	fuel := "none"
	if l.Fuel > 0 {
		fuel = fmt.Sprint(l.Fuel)
	}
	return []string{
		"memory " + size(l.Memory), "timeout " + l.Timeout.String(), "output " + size(l.Output),
		"fuel " + fuel, "writes " + size(l.Writes), fmt.Sprintf("files %d", l.Files),
	}
}

func labelLines(labels map[string]string) []string {
	var ls []string
	for _, name := range sortedKeys(labels) {
		ls = append(ls, term.Line(name+"="+labels[name]))
	}
	return ls
}

func warmupLines(w *Warmup) []string {
	if w == nil {
		return nil
	}
	return append([]string{term.Line("tool " + w.Tool)}, jsonLines("arguments", w.Arguments)...)
}

// toolLines says what a tool says of itself, its hints first.
func toolLines(p *ToolPin) []string {
	if p == nil {
		return nil
	}
	a := p.Annotations
	ls := []string{
		fmt.Sprintf("%s %s", capabilities.ReadOnlyHint, a.ReadOnly),
		fmt.Sprintf("%s %s", capabilities.DestructiveHint, a.Destructive),
		fmt.Sprintf("%s %s", capabilities.IdempotentHint, a.Idempotent),
		fmt.Sprintf("%s %s", capabilities.OpenWorldHint, a.OpenWorld),
	}
	if p.IdempotencyKeyArgument != "" {
		ls = append(ls, term.Line("idempotency key in "+p.IdempotencyKeyArgument))
	}
	ls = append(ls, nameLines("requires of the client:", p.ClientCapabilities)...)
	if p.Title != "" {
		ls = append(ls, "title "+plain(p.Title))
	}
	if p.Description != "" {
		ls = append(ls, "description")
		for l := range strings.SplitSeq(p.Description, "\n") {
			ls = append(ls, "  "+plain(l))
		}
	}
	ls = append(ls, jsonLines("inputSchema", p.InputSchema)...)
	return append(ls, jsonLines("outputSchema", p.OutputSchema)...)
}

// plain escapes a text so that two texts never look the same: a backslash too.
func plain(s string) string { return term.Line(strings.ReplaceAll(s, `\`, `\\`)) }

// jsonLines returns JSON over several lines below a title.
func jsonLines(title string, b json.RawMessage) []string {
	if b == nil {
		return nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "  ", " "); err != nil {
		return []string{title, "  " + line(string(b))}
	}
	return append([]string{title}, strings.Split("  "+term.Text(out.String()), "\n")...)
}

// wrap breaks lines that are longer than maxLine.
func wrap(ls []string) []string {
	var out []string
	for _, l := range ls {
		for runes := []rune(l); ; {
			if len(runes) <= maxLine {
				out = append(out, string(runes))
				break
			}
			out = append(out, string(runes[:maxLine]))
			runes = append([]rune("\\ "), runes[maxLine:]...)
		}
	}
	return out
}

// line returns text of others as one escaped line of limited length.
func line(s string) string { return clip(term.Line(s)) }

// size returns bytes in the greatest unit that divides them.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(n)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
