package config

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

const (
	// maxKept bounds how long anything is kept.
	maxKept = 10 * 365 * 24 * time.Hour
	minKept = time.Hour
)

// The tools of the host's own.
var hostTools = []string{"sandboxd_preview", "sandboxd_undo", "sandboxd_changes"}

func isHostTool(s string) bool { return slices.Contains(hostTools, s) }

// enforcement reads what of a package's entry is about the judges of its calls.
func (d *decoder) enforcement(o strictyaml.Value, p *Package) {
	d.outbox(o.Field("outbox"), p)
	const patterns = `write guest paths or names, for example ["/data/*.log", "*.db"]`
	p.AppendOnly = few(o.Field("appendOnly")).Texts(patterns, guestPattern)
	p.VolatileFiles = few(o.Field("volatileFiles")).Texts(patterns, guestPattern)
	d.relaxations(o.Field("relaxations"), p)
	d.additive(o.Field("additive"), p)
	d.replay(o.Field("replay"), p)
	p.CommitOnError = few(o.Field("commitOnError")).Texts("write a list of tools, for example [save_many]", tool.ValidToolName)
}

// outbox reads where messages go.
func (d *decoder) outbox(v strictyaml.Value, p *Package) {
	if !v.Present() {
		return
	}
	for _, e := range entries(v, "write host: {file: PATH}") {
		const mend = "write {file: PATH}"
		at := v.In(e)
		if !tool.ValidHost(e.Key) {
			at.Fail(strictyaml.Quote(e.Key)+" is not a host", "write it in lower case, without scheme and path, for example hooks.example.com")
		}
		if !at.Is(strictyaml.Map, mend) {
			return
		}
		d.remember(at)
		sink := Sink{File: d.path(object(at, "packages[].outbox.*").Required("file"), "write the path of a file, for example ./sent.jsonl")}
		if p.Outbox == nil {
			p.Outbox = map[string]Sink{}
		}
		p.Outbox[e.Key] = sink
	}
}

// relaxations reads which requested relaxations the operator approves.
func (d *decoder) relaxations(v strictyaml.Value, p *Package) {
	const mend = "write approved, or a list of lines as `sandboxd inspect` shows them"
	switch {
	case !v.Present():
	case v.Node.Kind == strictyaml.Text:
		if v.Text(mend) != "approved" {
			v.Fail(strictyaml.Quote(v.Node.Text)+" is not known", mend)
		}
		p.Relaxations.All = true
	default:
		p.Relaxations.Lines = few(v).Texts(mend, func(s string) bool { return s != "" && len(s) <= maxPath && strictyaml.HiddenIn(s) == "" })
	}
}

// additive reads how losses are judged.
func (d *decoder) additive(v strictyaml.Value, p *Package) {
	const mend = "write strict or {recoverable: 720h}"
	switch {
	case !v.Present():
	case v.Node.Kind == strictyaml.Text:
		if v.Text(mend) != "strict" {
			v.Fail(strictyaml.Quote(v.Node.Text)+" is not known", mend)
		}
	default:
		duration(object(v, "packages[].additive").Required("recoverable"), &p.Recoverable)
	}
}

// replay reads how often idempotent tools are run a second time.
func (d *decoder) replay(v strictyaml.Value, p *Package) {
	if !v.Present() {
		return
	}
	for _, e := range entries(v, "write tool: always, sample or off; default: for all others") {
		at := v.In(e)
		if !tool.ValidToolName(e.Key) {
			at.Fail(strictyaml.Quote(e.Key)+" is not the name of a tool", "write the tool's name, or default")
		}
		d.remember(at)
		if p.Replay == nil {
			p.Replay = map[string]Replay{}
		}
		// YAML 1.1 readers take off for false: so may who writes it.
		if at.Node != nil && at.Node.Kind == strictyaml.Bool {
			at.Fail("is not known", "write always, sample or off")
			continue
		}
		p.Replay[e.Key] = Replay(at.OneOf("always", "sample", "off"))
	}
}

// store reads where the host keeps what calls leave.
func (d *decoder) store(v strictyaml.Value) string {
	if !v.Present() {
		return ""
	}
	// An error does not show the URL: it may hold a password.
	const mend = "write sqlite, or the URL of a PostgreSQL database, for example postgres://sandboxd@db.example.com/sandboxd"
	s := v.Text(mend)
	if s == "sqlite" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.RawQuery == "" || len(s) > maxPath || strictyaml.HiddenIn(s) != "" {
		v.Fail("is neither sqlite nor the URL of a PostgreSQL database", mend)
		return ""
	}
	return s
}

func (d *decoder) keep(v strictyaml.Value, k *Keep) {
	if !v.Present() {
		return
	}
	o := object(v, "keep")
	duration(o.Field("undo"), &k.Undo)
	size(o.Field("undoSize"), &k.UndoSize, mib, tib)
	duration(o.Field("idempotencyKeys"), &k.IdempotencyKeys)
}

// duration reads for how long something is kept where it is said.
func duration(v strictyaml.Value, dst *time.Duration) {
	if !v.Present() {
		return
	}
	if *dst = v.Duration(maxKept); *dst < minKept && !v.Failed() {
		v.Fail("is less than an hour", "write a duration as 24h or 30d")
	}
}

// guestPattern reports whether s is a pattern of guest paths, or of names.
func guestPattern(s string) bool {
	_, err := path.Match(s, "")
	return err == nil && s != "" && len(s) <= maxPath && path.Clean(s) == s && strictyaml.HiddenIn(s) == "" &&
		(!strings.Contains(s, "/") || strings.HasPrefix(s, "/")) && !strings.ContainsAny(s, "\n\r\t")
}
