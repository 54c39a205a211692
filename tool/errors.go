package tool

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotSupported is matched under errors.Is by the errors of what a manifest
// may say and this version does not do: the ABIs mcp and extism.
var ErrNotSupported = errors.New("not supported yet")

// ErrNoBuilder is matched under errors.Is where a package has a source and
// [Load] was given nothing to build it with.
var ErrNoBuilder = errors.New("no builder for packages with a source")

// ManifestError is what is wrong with a manifest or with a module's description
// of itself, where it is, and how it is mended.
type ManifestError struct {
	File         string
	Line, Column int    // from 1, columns in bytes; 0 where the place is not known
	Field        string // path of the field, for example requests.volumes[0].access; empty for the document
	Problem      string
	Mend         string // what to write instead; may be empty

	cause error
}

// Error returns one line: file, place, field, problem and mend.
func (e *ManifestError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Field != "" {
		b.WriteString(": " + clip(e.Field))
	}
	b.WriteString(": " + e.Problem)
	if e.Mend != "" {
		b.WriteString("; " + e.Mend)
	}
	return oneLine(b.String())
}

// below names the field that the error is about.
func (e *ManifestError) below(t *trail) *ManifestError {
	e.Field = t.String()
	return e
}

// Unwrap returns the cause, [ErrNotSupported] for example, or nil.
func (e *ManifestError) Unwrap() error { return e.cause }

// oneLine keeps text that came from a file or a library on one line of a
// terminal, with nothing in it that the terminal obeys.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) || r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
}

// quote returns s in quotes, cut to a length that fits a line.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}

// clip cuts text of which a document decides how long it is.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
