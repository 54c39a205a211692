// Package hostoutbox is the host side of sandboxd_outbox, by which a guest hands
// messages over that are delivered after its call (docs/abi.md).
//
// As in package wasi nothing of a call is bound into the host function: it finds
// the call by the module that calls it. Whether a message may be sent is judged
// by package outbox.
package hostoutbox
