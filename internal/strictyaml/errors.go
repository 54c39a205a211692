package strictyaml

import (
	"fmt"
	"strings"
)

// Error is what is wrong with a document, where it is, and how it is mended.
type Error struct {
	File         string
	Line, Column int    // from 1, columns in bytes; 0 where the place is not known
	Field        string // path of the field, for example requests.volumes[0].access; empty for the document
	Problem      string
	Mend         string // what to write instead; may be empty
	Cause        error  // for errors.Is; may be nil
}

// Error returns one line: file, place, field, problem and mend.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Field != "" {
		b.WriteString(": " + Clip(e.Field))
	}
	b.WriteString(": " + e.Problem)
	if e.Mend != "" {
		b.WriteString("; " + e.Mend)
	}
	return OneLine(b.String())
}

// below names the field that the error is about.
func (e *Error) below(t *Trail) *Error {
	e.Field = t.String()
	return e
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Cause }

// OneLine keeps text that came from a file or a library on one line of a
// terminal, with nothing in it that the terminal obeys.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if Hidden(r) || r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
}

// Quote returns s in quotes, cut to a length that fits a line.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}

// Clip cuts text of which a document decides how long it is.
func Clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
