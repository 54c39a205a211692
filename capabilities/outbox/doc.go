// Package outbox is the messages of one call that are delivered after it: a
// [Box] of what it sends over a [Base] of what was sent before, which is also the
// authority of the call to send.
//
// A message is known by its host and key as long as the store keeps its [Record].
// One that is known already is taken and not sent again, which is no effect. The
// key is the guest's own or made from the tool, its arguments and the caller, and
// never from the call, so that a call that is made again sends nothing new.
package outbox
