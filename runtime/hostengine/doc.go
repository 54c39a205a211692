// Package hostengine is the host side of what the engine adds to every module
// (see internal/wasmbin.Rewrite): the checkpoint, which a guest calls when its
// counter has run down. There the guest is stopped when its call has ended,
// pays for what it ran, and hands its processor on when others wait for one.
//
// No author's module can import it.
package hostengine
