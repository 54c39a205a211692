package main

import "io"

// red is a colour of terminals (ECMA-48, SGR).
const red = "31"

// paint colours s where w may get colours.
func (a *app) paint(w io.Writer, colour, s string) string {
	if !a.colour(w) {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
