package tool

import (
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

import "slices"

// fieldsOf lists the fields of each mapping of a manifest, by where it is.
// docs/manifest.md describes each.
var fieldsOf = map[string][]string{
	"":                          {"name", "version", "module", "source", "abi", "files", "args", "reseeds", "tools", "requests", "relaxations", "limits", "warmup", "labels"},
	"source":                    {"language", "dir"},
	"tools[]":                   {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "idempotencyKeyArgument", "clientCapabilities"},
	"tools[].annotations":       {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"},
	"requests":                  {"volumes", "kv", "sql", "http", "services", "outbox", "env", "sessionScratch", "session", "setup"},
	"requests.volumes[]":        {"name", "path", "access"},
	"requests.sql[]":            {"name"},
	"requests.http[]":           {"host", "methods", "paths", "secret"},
	"requests.outbox[]":         {"host"},
	"relaxations":               {"volatile", "history", "transitions", "recoverable"},
	"relaxations.history[]":     {"of", "under"},
	"relaxations.transitions[]": {"at", "from", "to"},
	"limits":                    {"memory", "timeout", "output", "fuel", "writes", "files"},
	"warmup":                    {"tool", "arguments"},
}

// position is where a field is in its file, from 1.
type position struct{ line, column int }

// Fault returns the error of a field whose value is well-formed and wrong for
// what the package holds, with the field's place where the manifest has it.
func (m *Manifest) Fault(field, problem, mend string, cause error) *ManifestError {
	e := &ManifestError{File: m.file, Field: field, Problem: problem, Mend: mend, Cause: cause}
	if e.File == "" {
		e.File = manifestName
	}
	if at, ok := m.places[field]; ok {
		e.Line, e.Column = at.line, at.column
	}
	return e
}

// remember keeps where the manifest's own fields are.
func (m *Manifest) remember(file string, o strictyaml.Value) {
	m.file, m.places = file, map[string]position{}
	for _, key := range fieldsOf[""] {
		if v := o.Field(key); v.Present() {
			m.places[key] = position{v.Line, v.Column}
		}
	}
}

// unsupported returns what a manifest may say and this version does nothing
// with, a line each.
func unsupported(m *Manifest) []string {
	var w []string
	say := func(is bool, field, consequence string) {
		if is {
			w = append(w, field+": not supported yet; "+consequence)
		}
	}
	r := m.Requests
	say(len(r.SQL) > 0, "requests.sql", "no database is given")
	say(len(r.HTTP) > 0, "requests.http", "no network is given")
	say(len(r.Services) > 0, "requests.services", "no service is given")
	say(r.SessionScratch > 0, "requests.sessionScratch", "the package does not load")
	say(r.Session, "requests.session", "the package does not load")
	say(r.Setup, "requests.setup", "no set-up transaction is made")
	say(len(m.Labels) > 0, "labels", "nothing follows from them")
	return slices.Clip(w)
}
