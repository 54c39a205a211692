package additive

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// What can be lost.
const (
	whyRemoved  = "path was removed"
	whyRenamed  = "path was renamed"
	whyLink     = "link leads elsewhere"
	whySpecial  = "special file was replaced"
	whyStep     = "change is of an unknown sort"
	whyHidden   = "old content cannot be read"
	whyNotJSON  = "file was JSON and no longer is"
	whyNotLines = "file was JSON Lines and no longer is: every line has to be a JSON object"
	whyNotText  = "file was text and no longer is: text is UTF-8 without NUL"
	whyMark     = "byte order mark came or went"
	whyScript   = "file can be run as a program: whole lines may be added at its end, and nothing else may change"
	whyBinary   = "file in a format without records was changed"
	whyPrefix   = "append-only file was changed before its end"
	whyComplex  = "file is too complex to judge"
)

// What would have helped.
const (
	hintBinary = "keep such data in keys or SQL, or have the operator list the path under appendOnly if it only grows"
	hintAsked  = "the package requests %s, which would allow this and is not approved; " +
		"look at it with sandboxd approve --dry-run, and approve the package or list it under relaxations in the configuration"
)

func whyType(from, to volume.Kind) string {
	return fmt.Sprintf("type was changed from %s to %s", fileKind(from), fileKind(to))
}

func whyMode(from, to fs.FileMode) string {
	return fmt.Sprintf("mode was changed from %04o to %04o", from.Perm(), to.Perm())
}

func whyLine(n int64) string {
	return fmt.Sprintf("line %d was removed, changed or moved", n)
}

func whyLost(m miss) string {
	switch m.why {
	case keyRemoved:
		return "key was removed"
	case valueChanged:
		return "value was changed"
	case typeChanged:
		return fmt.Sprintf("value was changed from %s to %s", article(m.from), article(m.to))
	case elementLost:
		return "element was removed, changed or moved"
	}
	return "value was lost"
}

func article(k kind) string {
	switch k {
	case object, array:
		return "an " + k.String()
	case noValue, null:
		return k.String()
	case stringValue, number, boolean:
	}
	return "a " + k.String()
}

func fileKind(k volume.Kind) string {
	switch k {
	case volume.File:
		return "file"
	case volume.Dir:
		return "directory"
	case volume.Symlink:
		return "link"
	case volume.Special:
		return "special file"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// asked says which requested relaxation would have allowed something.
func asked(what string) string { return fmt.Sprintf(hintAsked, what) }

// String returns the relaxation as the configuration names it: a hint says what to
// list there.
func (t Transition) String() string {
	return fmt.Sprintf("transition at %s from %q to %q", t.At, t.From, t.To)
}

// String returns the relaxation as the configuration names it.
func (h History) String() string { return fmt.Sprintf("history of %s under %s", h.Of, h.Under) }

func recoverable(d time.Duration) string { return "recoverable " + d.String() }
