package verify

import (
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// promises reports whether a value of a hint says that a tool does not do
// something.
func promises(h capabilities.Hint, value bool) bool { return value == promise(h) }

// promise is the value of a hint that is the safer one.
func promise(h capabilities.Hint) bool {
	return h == capabilities.ReadOnlyHint || h == capabilities.IdempotentHint
}

// What the promises of hints say.
var (
	words = map[capabilities.Hint]string{
		capabilities.ReadOnlyHint: "read-only", capabilities.DestructiveHint: "additive",
		capabilities.IdempotentHint: "idempotent", capabilities.OpenWorldHint: "closed",
	}
	safe = map[capabilities.Hint]string{
		capabilities.ReadOnlyHint: "nothing was written", capabilities.DestructiveHint: "nothing was lost",
		capabilities.IdempotentHint: "a second run did nothing further", capabilities.OpenWorldHint: "no network was tried",
	}
	proofs = map[capabilities.Hint]string{
		capabilities.ReadOnlyHint:  "the package requests nothing that it could write to",
		capabilities.OpenWorldHint: "the package requests no network",
	}
)

// ofClaim returns where a claim holds a hint.
func ofClaim(c capabilities.Claim, h capabilities.Hint) *capabilities.Tri { return hintOf(&c, h) }

func hintOf(c *capabilities.Claim, h capabilities.Hint) *capabilities.Tri {
	switch h {
	case capabilities.ReadOnlyHint:
		return &c.ReadOnly
	case capabilities.DestructiveHint:
		return &c.Destructive
	case capabilities.IdempotentHint:
		return &c.Idempotent
	case capabilities.OpenWorldHint:
		return &c.OpenWorld
	}
	return new(capabilities.Tri)
}

func ofEffective(e capabilities.Effective, h capabilities.Hint) bool {
	switch h {
	case capabilities.ReadOnlyHint:
		return e.ReadOnly
	case capabilities.DestructiveHint:
		return e.Destructive
	case capabilities.IdempotentHint:
		return e.Idempotent
	case capabilities.OpenWorldHint:
		return e.OpenWorld
	}
	return false
}

// attempt says what was tried on what.
func attempt(o capabilities.Operation, object string) string {
	if string(o) == object {
		return object
	}
	return string(o) + " of " + object
}

func times(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// shell joins words to a command line for a POSIX shell.
func shell(words []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	var quoted []string
	for _, w := range words {
		if w == "" || strings.Trim(w, plain) != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ")
}
