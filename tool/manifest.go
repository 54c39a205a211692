package tool

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// Limits of a manifest.
const (
	maxTools   = 256
	maxRequest = 64 // volumes, hosts, services and the like, of each
	maxLabels  = 32
	maxArg     = 1024 // bytes
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
	n, err := strictyaml.ParseYAML(file, b)
	if err != nil {
		return nil, err
	}
	d := &decoder{Decoder: strictyaml.NewDecoder(file), patterns: patterns{uncompiled: true}}
	m := d.manifest(d.Root(n), embedded)
	if d.Failed() {
		return nil, d.Err()
	}
	return m, nil
}

func (d *decoder) manifest(root strictyaml.Value, embedded bool) *Manifest {
	o := root.Object(fieldsOf[""]...)
	if d.Failed() {
		return nil
	}
	root.NoTwins()
	m := &Manifest{ABI: d.abi(o.Field("abi"))}
	m.Name = o.Required("name").Pattern(ValidPackageName, "write lower-case letters, digits and hyphens, up to 64")
	m.Version = o.Field("version").Pattern(versionName.MatchString, `write it as "1.0.0", in quotes`)
	m.Module, m.Source = d.module(o, embedded)
	m.Labels = d.labels(o.Field("labels"))
	m.Files = d.files(o.Field("files"))
	m.Args = d.args(o.Field("args"))
	m.Reseeds = d.reseeds(o.Field("reseeds"), m.ABI)
	tools := o.Field("tools")
	if m.ABI == Command && !tools.Present() {
		tools.Fail("is missing", "list the tools; only modules of abi reactor describe themselves")
	}
	m.Tools = d.definitions(tools, true)
	m.Requests = d.requests(o.Field("requests"), m.Files != "")
	m.Relaxations = d.relaxations(o.Field("relaxations"), m.Requests.Volumes)
	m.Limits = d.limits(o.Field("limits"))
	m.Warmup = d.warmup(o.Field("warmup"), m.Tools)
	if !d.Failed() {
		m.remember(d.File(), o)
		m.Warnings = warnings(m)
	}
	return m
}

func (d *decoder) abi(v strictyaml.Value) ABI {
	if !v.Present() {
		return Command
	}
	a := ABI(v.Text("write command or reactor"))
	switch a {
	case Command, Reactor:
	case MCP, Extism:
		v.FailCause(string(a)+" is not supported yet", "build the module for abi command", ErrNotSupported)
	default:
		v.Fail(strictyaml.Quote(string(a))+" is not an ABI", "write command or reactor")
	}
	return a
}

// module returns where the module is: exactly one of module and source.
func (d *decoder) module(o strictyaml.Value, embedded bool) (string, *Source) {
	file, source := o.Field("module"), o.Field("source")
	if file.Present() && source.Present() {
		source.Fail("is there together with module", "keep one of them")
	}
	if !file.Present() && !source.Present() && !embedded {
		file.Fail("is missing", "write module: NAME.wasm, or source: {language: go, dir: .}")
	}
	var s *Source
	if source.Present() {
		so := source.Object(fieldsOf["source"]...)
		s = &Source{Dir: "."}
		s.Language = so.Required("language").Pattern(ValidPackageName, "write the language in lower case, for example go")
		if dir := so.Field("dir"); dir.Present() {
			s.Dir = dir.Pattern(localPath, "write a folder below the manifest's, for example . or src")
		}
	}
	if !file.Present() {
		return "", s
	}
	return file.Pattern(func(s string) bool { return localPath(s) && s != "." }, "write a path below the manifest's folder, for example notes.wasm"), s
}

// files returns the folder of the package's own files.
func (d *decoder) files(v strictyaml.Value) string {
	if !v.Present() {
		return ""
	}
	return v.Pattern(func(s string) bool { return localPath(s) && s != "." }, "write a folder below the manifest's, for example files")
}

// args returns the arguments of the program: like those of a command line they may
// be there twice, or be empty.
func (d *decoder) args(v strictyaml.Value) []string {
	const mend = "write a list of texts, for example [-I, /package/tool.py]"
	var list []string
	for _, item := range few(v).Each(mend) {
		list = append(list, item.Shown(maxArg, false, mend))
	}
	return list
}

// reseeds returns a promise that only a program can make.
func (d *decoder) reseeds(v strictyaml.Value, abi ABI) bool {
	is := v.Present() && v.Truth()
	if is && abi != Command {
		v.Fail("is for abi command", "remove it; a reactor exports sandboxd_reseed")
	}
	return is
}

// localPath reports whether s names something in the folder itself on every
// operating system: relative, slashes only, clean, without leaving it.
func localPath(s string) bool {
	return len(s) <= 1024 && path.Clean(s) == s && filepath.IsLocal(filepath.FromSlash(s)) &&
		!path.IsAbs(s) && s != ".." && !strings.HasPrefix(s, "../") &&
		!strings.ContainsAny(s, "\\:\n\r\t") && strictyaml.HiddenIn(s) == ""
}

func (d *decoder) labels(v strictyaml.Value) map[string]string {
	if !v.Is(strictyaml.Map, "write name: value") || len(v.Node.Entries) == 0 {
		return nil
	}
	if len(v.Node.Entries) > maxLabels {
		v.Fail("more than 32 labels", "remove some")
		return nil
	}
	labels := make(map[string]string, len(v.Node.Entries))
	for _, e := range v.Node.Entries {
		l := v.In(e)
		if !labelName.MatchString(e.Key) {
			l.Fail(strictyaml.Quote(e.Key)+" is not a label", "write letters, digits, dots, hyphens and underscores")
		}
		labels[e.Key] = l.Pattern(labelName.MatchString, "write letters, digits, dots, hyphens and underscores, in quotes where they make a number")
	}
	return labels
}

func (d *decoder) warmup(v strictyaml.Value, tools []Definition) *Warmup {
	if !v.Present() {
		return nil
	}
	o := v.Object(fieldsOf["warmup"]...)
	w := &Warmup{Arguments: json.RawMessage("{}")}
	name := o.Required("tool")
	w.Tool = name.Pattern(ValidToolName, "write the name of a tool")
	known := len(tools) == 0
	for _, t := range tools {
		known = known || t.Name == w.Tool
	}
	if !known {
		name.Fail(strictyaml.Quote(w.Tool)+" is not a tool of this package", "write the name of a tool")
	}
	if a := o.Field("arguments"); a.Is(strictyaml.Map, "write the arguments of the call") {
		w.Arguments = a.Node.JSON(false)
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

func (d *decoder) limits(v strictyaml.Value) Limits {
	l := Limits{Memory: 64 * mib, Timeout: defaultTimeout, Output: mib, Writes: 64 * mib, Files: 1000}
	if !v.Present() {
		return l
	}
	o := v.Object(fieldsOf["limits"]...)
	set := func(key string, dst *int64, most int64) {
		if n, ok := o.Field(key).Size(most); ok && n > 0 {
			*dst = n
		}
	}
	set("memory", &l.Memory, gib)
	if l.Memory < minMemory {
		o.Field("memory").Fail("is less than one page of WebAssembly memory", "write at least 64KiB; a program in Go needs some MiB")
	}
	set("output", &l.Output, 16*mib)
	set("writes", &l.Writes, gib)
	if n := o.Field("files").Count(maxFiles); n > 0 {
		l.Files = int64(n)
	}
	l.Fuel = o.Field("fuel").Count(1 << 62)
	if t := o.Field("timeout"); t.Present() {
		if n := t.Duration(maxTimeout); n > 0 {
			l.Timeout = n
		}
	}
	return l
}

func warnings(m *Manifest) []string {
	var w []string
	for _, t := range m.Tools {
		if t.Claim.Contradictory() {
			w = append(w, "tool "+t.Name+": readOnlyHint and destructiveHint are both true; read-only is enforced")
		}
	}
	if m.Warmup != nil && m.ABI != Reactor {
		w = append(w, "warmup: for abi reactor only; no call is made ahead")
	}
	return append(w, unsupported(m)...)
}
