//go:build !wasip1

package sdk

import "slices"

// notes are what a call sent, where there is no host to send it to.
type notes struct{ sent []Note }

func (c *Call) note(n Note) { c.sent = append(c.sent, n) }

// Notes returns what Progress and Log were given, for tests of handlers. It is
// there only in programs that are built for the machine itself.
func (c *Call) Notes() []Note { return slices.Clone(c.sent) }
