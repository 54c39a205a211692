//go:build unix

package regular

import "syscall"

// noWait keeps an open from waiting for the other end of a pipe, and from taking
// a terminal.
const noWait = syscall.O_NONBLOCK | syscall.O_NOCTTY
