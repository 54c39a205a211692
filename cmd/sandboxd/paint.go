package main

import (
	"io"

	"github.com/sandboxd/sandboxd/internal/term"
)

// paint colours s where w may get colours.
func (a *app) paint(w io.Writer, colour, s string) string {
	return term.Paint(a.colour(w), colour, s)
}
