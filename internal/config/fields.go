package config

import (
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

// Error is what is wrong with a configuration, where it is, and how it is
// mended.
type Error = strictyaml.Error

// fieldsOf lists the fields of each mapping of a configuration, by where it is.
// docs/configuration.md describes each.
var fieldsOf = map[string][]string{
	"": {
		"packages", "principals", "limits", "listen", "store", "keep", "hostTools", "audit", "log", "traces", "process", "wasmOpt", "grace",
	},
	"packages[]": {
		"source", "as", "mode", "volumes", "env", "outbox", "optionalWrites", "appendOnly", "volatileFiles", "relaxations",
		"additive", "replay", "commitOnError", "limits",
	},
	"packages[].outbox.*":  {"file"},
	"packages[].additive":  {"recoverable"},
	"keep":                 {"undo", "undoSize", "idempotencyKeys"},
	"packages[].volumes.*": {"folder", "managed"},
	"packages[].limits":    {"calls", "waiting", "memory"},
	"principals[]":         {"name", "token"},
	"limits":               {"requests", "body", "calls", "waiting", "memory", "package"},
	"limits.package":       {"calls", "waiting", "memory"},
	"listen":               {"http", "metrics", "withoutAuthentication"},
	"audit":                {"maxSize", "keep"},
	"log":                  {"level", "format"},
	"traces":               {"endpoint", "sample"},
	"process":              {"gcPercent", "memoryLimit"},
}

// laterOf lists, in the same way, the fields of what is not built yet.
var laterOf = map[string][]string{
	"packages[]": {
		"http", "services", "secrets", "confirm", "openness", "reportCommits", "quarantine", "requireAttestations",
	},
	"packages[].volumes.*": {"label"},
}

// object returns a mapping with the fields that it may have at a place.
func object(v strictyaml.Value, at string) strictyaml.Value {
	later := laterOf[at]
	o := v.Object(slices.Concat(fieldsOf[at], later)...)
	if o.Node == nil {
		return o
	}
	for _, e := range o.Node.Entries {
		if slices.Contains(later, e.Key) {
			o.In(e).FailCause("is not supported yet", "remove it", tool.ErrNotSupported)
		}
	}
	return o
}

// place is where a field is in its file, from 1.
type place struct{ line, column int }

// remember keeps where a value is.
func (d *decoder) remember(v strictyaml.Value) {
	d.places[v.Trail.String()] = place{v.Line, v.Column}
}

// Fault returns the error of a field whose value is well-formed and turns out to
// be wrong, such as packages[0].source, with the field's place where the file
// has it. Places of packages, their fields and their volumes are known; of what is
// in another list or mapping it is that of the list.
func (c *Config) Fault(field, problem, mend string, cause error) *Error {
	at, known := c.places[field]
	if i := strings.LastIndexAny(field, ".["); !known && i > 0 {
		at = c.places[field[:i]]
	}
	file := c.file
	if file == "" {
		file = "configuration"
	}
	return &Error{File: file, Line: at.line, Column: at.column, Field: field, Problem: problem, Mend: mend, Cause: cause}
}
