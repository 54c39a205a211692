package additive

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrPointer: a text is no file with a JSON pointer.
var ErrPointer = errors.New("pointer has not the form /path#/json/pointer")

// Rules are the approved exceptions. The zero value has none.
//
// Patterns are the operator's, of guest paths, as [path.Match] has them; one
// without a slash is held against the last name in whatever folder. A malformed
// pattern matches nothing.
type Rules struct {
	Volatile      []Pointer // scalars that may change while their type stays; default: none
	VolatileFiles []string  // patterns of files that may change at will; default: none
	AppendOnly    []string  // patterns of files in unknown formats that may grow at the end; default: none
	History       []History // default: none
	Transitions   []Transition
	// Requested is what the package asks for and nobody approved. It changes no
	// verdict, only what is said about a loss.
	Requested Requested
}

// Requested are relaxations that do not apply.
type Requested struct {
	Volatile    []Pointer
	History     []History
	Transitions []Transition
	Recoverable time.Duration // 0: not requested
}

// Pointer is a place in a JSON file (RFC 6901). A segment "*" stands for any
// one key or index. The records of a JSON Lines file are the elements of an
// array, as it were: "/0/status", or "/*/status".
type Pointer struct {
	File     string // guest path
	Segments []string
	written  string
}

// ParsePointer reads "/data/notes.json#/next_id". It returns [ErrPointer].
func ParsePointer(s string) (Pointer, error) {
	file, pointer, found := strings.Cut(s, "#")
	if !found || !strings.HasPrefix(file, "/") || !strings.HasPrefix(pointer, "/") {
		return Pointer{}, fmt.Errorf("%w: %q", ErrPointer, s)
	}
	p := Pointer{File: file, Segments: strings.Split(pointer[1:], "/"), written: s}
	for i, seg := range p.Segments {
		plain := strings.ReplaceAll(strings.ReplaceAll(seg, "~0", ""), "~1", "")
		if strings.Contains(plain, "~") {
			return Pointer{}, fmt.Errorf("%w: %q", ErrPointer, s)
		}
		p.Segments[i] = strings.ReplaceAll(strings.ReplaceAll(seg, "~1", "/"), "~0", "~")
	}
	return p, nil
}

// String returns the pointer as ParsePointer reads it.
func (p Pointer) String() string {
	if p.written != "" {
		return p.written
	}
	var b strings.Builder
	b.WriteString(p.File + "#")
	for _, seg := range p.Segments {
		b.WriteByte('/')
		b.WriteString(escapeSegment(seg))
	}
	return b.String()
}

func escapeSegment(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// History allows a file to be overwritten, whatever its format, when the same
// commit adds its old bytes under another path: as a file that is new, or at the
// end of one, alone or as whole lines among others.
type History struct {
	Of    string // guest path of a file, or of a folder with all that is below it
	Under string // likewise
}

// Transition allows one scalar to change from one text to another. The text of
// a string is its content, of a number its decimal value, else the literal. The
// type stays, but from or to null.
type Transition struct {
	At       Pointer
	From, To string
}

// matches reports whether a pattern of the list matches a guest path.
func matches(patterns []string, object string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		name := object
		if !strings.Contains(p, "/") {
			name = path.Base(object)
		}
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// exception is a pointer relaxation as it applies to one file.
type exception struct {
	at       []string
	from, to string // of a transition
	volatile bool
	written  string
}

// exceptions returns what a list of relaxations has for a file.
func exceptions(file string, volatile []Pointer, transitions []Transition) []exception {
	var list []exception
	for _, p := range volatile {
		if p.File == file && len(p.Segments) > 0 {
			list = append(list, exception{at: p.Segments, volatile: true, written: "volatile " + p.String()})
		}
	}
	for _, t := range transitions {
		if t.At.File == file && len(t.At.Segments) > 0 {
			list = append(list, exception{
				at: t.At.Segments, from: t.From, to: t.To,
				written: t.String(),
			})
		}
	}
	return list
}
