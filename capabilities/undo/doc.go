// Package undo keeps what is needed to take back what a call committed, takes it
// back, and shows to people what a call left or would leave.
//
// [Build] makes the [Record] of a call, before its commit, from what was there
// and what the call would leave. [Restore] puts back what was, in the overlays of
// another transaction: that is an ordinary change, which is judged by nobody,
// committed with guards, and can be recorded and taken back itself.
//
// # What is taken back
//
// Files, directories and keys: contents, modes, and modification times of files
// and directories. A file that the call moved is moved back. What is neither
// known to an overlay nor told by a base (owners, extended attributes, further
// names of a file, status change times, times of links) is not.
//
// # When it is refused
//
// Undo takes back a call and nothing else. Every path and key must be as the call
// left it: the same kind, mode and content; a directory that the call made must
// hold nothing else. Times do not count, with one exception: when a call moved so
// much that reading it all would be too long, files that it only moved are known
// by their size and modification time. They are moved back as they are, so that
// nothing is lost by it.
//
// A record from which something is missing says so ([Record.Complete]); it is for
// showing, and Restore refuses it.
//
// # What is shown
//
// A [Diff] holds text as the call's files and keys have it, control characters
// too: a JSON client wants it so. Who prints it to a terminal or a page escapes
// it there. The lines that are the diff's own do hold: names with characters that
// are not printable are quoted, and each line of a content has its mark in front.
package undo
