// Package kv is the keys of one call: an [Overlay] of what it writes over a
// [Base], and [Keys], the authority of the call over them.
//
// The overlay remembers what was looked at, absence and ranges too, so that the
// [Change] it comes to rests on exactly that. Keys decides, through the call's
// [capabilities.Ledger], before anything changes, and says what the guest is told.
//
// An operation that could have no effect anyway (removing a key that is not
// there, putting the value that is there, appending nothing, incrementing by 0,
// incrementing what is no number) gets its ordinary answer and is not judged,
// where the call may look at the keys at all.
package kv
