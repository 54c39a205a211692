package tool

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Limits of a manifest.
const (
	maxTools   = 256
	maxRequest = 64 // volumes, hosts, services and the like, of each
	maxLabels  = 32
)

// ParseManifest parses and validates a tool.yaml and fills in the defaults.
// file names it in errors. Its errors are [*ManifestError]: one line with file,
// line, column, field and mend. It refuses unknown fields, keys that are there
// twice or differ by case only, wrong types, anchors, aliases and tags, and
// documents over 1 MiB. ABIs that are not built yet match [ErrNotSupported].
func ParseManifest(file string, b []byte) (*Manifest, error) {
	return parseManifest(file, b, false)
}

// parseManifest reads a manifest; an embedded one need not say where its
// module is.
func parseManifest(file string, b []byte, embedded bool) (*Manifest, error) {
	n, err := parseYAML(file, b)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: file}
	m := d.manifest(d.root(n), embedded)
	if d.failed() {
		return nil, d.err
	}
	return m, nil
}

func (d *decoder) manifest(root value, embedded bool) *Manifest {
	o := root.object(fieldsOf[""]...)
	if d.failed() {
		return nil
	}
	root.noTwins()
	m := &Manifest{ABI: d.abi(o.field("abi"))}
	m.Name = o.required("name").pattern(packageName.MatchString, "write lower-case letters, digits and hyphens, up to 64")
	m.Version = o.field("version").pattern(versionName.MatchString, `write it as "1.0.0", in quotes`)
	m.Module, m.Source = d.module(o, embedded)
	m.Labels = d.labels(o.field("labels"))
	tools := o.field("tools")
	if m.ABI == Command && !tools.present() {
		tools.fail("is missing", "list the tools; only modules of abi reactor describe themselves")
	}
	m.Tools = d.definitions(tools, true)
	m.Requests = d.requests(o.field("requests"))
	m.Relaxations = d.relaxations(o.field("relaxations"), m.Requests.Volumes)
	m.Limits = d.limits(o.field("limits"))
	m.Warmup = d.warmup(o.field("warmup"), m.Tools)
	if !d.failed() {
		m.remember(o)
		m.Warnings = warnings(m)
	}
	return m
}

// noTwins refuses keys that differ by case only, anywhere below: readers that
// match keys without case would take one for the other.
func (v value) noTwins() {
	if v.n == nil || v.d.failed() {
		return
	}
	if e, other, ok := v.n.twin(); ok {
		at := value{d: v.d, trail: v.trail, line: e.line, column: e.column}
		at.fail("the keys "+quote(e.key)+" and "+quote(other)+" differ by case only", "rename one")
	}
	for _, e := range v.n.entries {
		v.in(e).noTwins()
	}
	if v.n.kind == listKind {
		for _, item := range v.each("") {
			item.noTwins()
		}
	}
}

// required returns a field that must be there.
func (o object) required(key string) value {
	v := o.field(key)
	if !v.present() && o.n != nil {
		v.fail("is missing", "add it")
	}
	return v
}

// pattern returns a text that ok accepts.
func (v value) pattern(ok func(string) bool, mend string) string {
	s := v.text(mend)
	if v.n != nil && !v.d.failed() && !ok(s) {
		v.fail(quote(s)+" is not allowed", mend)
	}
	return s
}

func (d *decoder) abi(v value) ABI {
	if !v.present() {
		return Command
	}
	a := ABI(v.text("write command or reactor"))
	switch a {
	case Command, Reactor:
	case MCP, Extism:
		v.failCause(string(a)+" is not supported yet", "build the module for abi command", ErrNotSupported)
	default:
		v.fail(quote(string(a))+" is not an ABI", "write command or reactor")
	}
	return a
}

// module returns where the module is: exactly one of module and source.
func (d *decoder) module(o object, embedded bool) (string, *Source) {
	file, source := o.field("module"), o.field("source")
	if file.present() && source.present() {
		source.fail("is there together with module", "keep one of them")
	}
	if !file.present() && !source.present() && !embedded {
		file.fail("is missing", "write module: NAME.wasm, or source: {language: go, dir: .}")
	}
	var s *Source
	if source.present() {
		so := source.object(fieldsOf["source"]...)
		s = &Source{Dir: "."}
		s.Language = so.required("language").pattern(packageName.MatchString, "write the language in lower case, for example go")
		if dir := so.field("dir"); dir.present() {
			s.Dir = dir.pattern(localPath, "write a folder below the manifest's, for example . or src")
		}
	}
	if !file.present() {
		return "", s
	}
	return file.pattern(func(s string) bool { return localPath(s) && s != "." }, "write a path below the manifest's folder, for example notes.wasm"), s
}

// localPath reports whether s names something in the folder itself on every
// operating system: relative, slashes only, clean, without leaving it.
func localPath(s string) bool {
	return len(s) <= 1024 && path.Clean(s) == s && filepath.IsLocal(filepath.FromSlash(s)) &&
		!path.IsAbs(s) && s != ".." && !strings.HasPrefix(s, "../") &&
		!strings.ContainsAny(s, "\\:\n\r\t") && hiddenIn(s) == ""
}

func (d *decoder) labels(v value) map[string]string {
	if !v.is(mapKind, "write name: value") || len(v.n.entries) == 0 {
		return nil
	}
	if len(v.n.entries) > maxLabels {
		v.fail("more than 32 labels", "remove some")
		return nil
	}
	o := object{v}
	labels := make(map[string]string, len(v.n.entries))
	for _, e := range v.n.entries {
		l := o.in(e)
		if !labelName.MatchString(e.key) {
			l.fail(quote(e.key)+" is not a label", "write letters, digits, dots, hyphens and underscores")
		}
		labels[e.key] = l.pattern(labelName.MatchString, "write letters, digits, dots, hyphens and underscores, in quotes where they make a number")
	}
	return labels
}

func (d *decoder) warmup(v value, tools []Definition) *Warmup {
	if !v.present() {
		return nil
	}
	o := v.object(fieldsOf["warmup"]...)
	w := &Warmup{Arguments: json.RawMessage("{}")}
	name := o.required("tool")
	w.Tool = name.pattern(ValidToolName, "write the name of a tool")
	known := len(tools) == 0
	for _, t := range tools {
		known = known || t.Name == w.Tool
	}
	if !known {
		name.fail(quote(w.Tool)+" is not a tool of this package", "write the name of a tool")
	}
	if a := o.field("arguments"); a.is(mapKind, "write the arguments of the call") {
		w.Arguments = a.n.json(false)
	}
	return w
}

// Default and greatest limits, see [Limits].
const (
	mib            = 1 << 20
	gib            = 1 << 30
	defaultTimeout = 5 * time.Second
	maxTimeout     = 10 * time.Minute
	maxFiles       = 100_000
	minMemory      = 64 << 10
)

func (d *decoder) limits(v value) Limits {
	l := Limits{Memory: 64 * mib, Timeout: defaultTimeout, Output: mib, Writes: 64 * mib, Files: 1000}
	if !v.present() {
		return l
	}
	o := v.object(fieldsOf["limits"]...)
	set := func(key string, dst *int64, most int64) {
		if n, ok := o.field(key).size(most); ok && n > 0 {
			*dst = n
		}
	}
	set("memory", &l.Memory, gib)
	if l.Memory < minMemory {
		o.field("memory").fail("is less than one page of WebAssembly memory", "write at least 64KiB; a program in Go needs some MiB")
	}
	set("output", &l.Output, 64*mib)
	set("writes", &l.Writes, gib)
	if n := o.field("files").count(maxFiles); n > 0 {
		l.Files = int64(n)
	}
	l.Fuel = o.field("fuel").count(1 << 62)
	if t := o.field("timeout"); t.present() {
		if n := t.duration(maxTimeout); n > 0 {
			l.Timeout = n
		}
	}
	return l
}

// duration returns a duration between 0 and most. A bare 0 is one too.
func (v value) duration(most time.Duration) time.Duration {
	const mend = "write a duration as 5s, 1m30s or 30d"
	if v.n == nil || v.n.kind == numberKind && v.n.text == "0" {
		return 0
	}
	s := v.text(mend)
	n, ok := parseDuration(s)
	if !ok {
		v.fail(quote(s)+" is not a duration", mend)
	} else if n > most {
		v.fail(quote(s)+" is more than "+most.String(), "lower it")
	}
	return n
}

func warnings(m *Manifest) []string {
	var w []string
	for _, t := range m.Tools {
		if t.Claim.Contradictory() {
			w = append(w, "tool "+t.Name+": readOnlyHint and destructiveHint are both true; read-only is enforced")
		}
	}
	return append(w, unsupported(m)...)
}
