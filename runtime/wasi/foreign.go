package wasi

import "github.com/sandboxd/sandboxd/capabilities"

// HostError stops a guest that asked the host for what the host failed to do.
type HostError struct{ Err error }

// Error returns the cause in words.
func (e *HostError) Error() string { return "host: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *HostError) Unwrap() error { return e.Err }

// Raise is how a host function of another interface stops the guest. It does not
// return. The first stop is the one that is remembered.
func (p *Process) Raise(err error) { p.raise(err) }

// Number returns the number of preview 1 for an error, which other interfaces
// answer with too; that of EIO for one that has none.
func Number(e capabilities.Errno) uint32 { return uint32(number(e)) }
