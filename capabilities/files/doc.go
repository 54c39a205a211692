// Package files is the file capability of one call: which operations on which
// volume are allowed, refused with an error, or stop the guest.
//
// It is policy without mechanism. Package volume resolves paths and keeps the
// changes; this package decides, through the call's [capabilities.Ledger],
// before anything changes, and says what the guest is told.
//
// An operation that could have no effect anyway (making a directory that
// exists, removing a file that does not) gets its ordinary error and is not
// judged. Errors are of type [capabilities.Errno], [*capabilities.Violation],
// [*volume.LimitError] or [*SealedError], or match [volume.ErrConflict] when the
// host's files changed while they were read; all but the first end the call.
package files
