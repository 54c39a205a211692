// Package outbox hands messages over for hosts outside, for a tool in Go. A
// message is delivered by the host after the call has ended well, again and again
// until the other end takes it; a call that fails sends nothing. A package that
// requests the host in its manifest (`outbox: [{host: hooks.example.com}]`) may
// send to it where the operator allows that.
//
// A message with a key that was sent before is not sent again. Without a key the
// host makes one from the tool, its arguments, the caller and the place of the
// message among those of the call, so that the same call sends once.
//
// A read-only tool and one with openWorldHint false are stopped when they send.
//
// Built for the machine the messages are kept in memory, so that handlers are
// tested with `go test`; see Sent.
package outbox
