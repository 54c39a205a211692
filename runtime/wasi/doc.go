// Package wasi is the host side of wasi_snapshot_preview1 for guests whose
// files are a capability: all 46 functions of the interface, over package
// files instead of the host's file system.
//
// Nothing of a call is bound into the host functions. They find the call's
// [Process] by the module that calls them, so that one instance can serve
// calls with different authority one after the other.
//
// A guest that has to be stopped is stopped by a panic with an error, which
// wazero hands back from Function.Call; errors.As finds it there. The Process
// remembers it too. The errors are [*capabilities.Violation],
// [*volume.LimitError], [*files.SealedError], [*OutputLimitError],
// [*ExitError], [*InterruptError], and one that matches [volume.ErrConflict]
// when the files changed while the guest read them.
//
// A context that has ended stops the guest at its next call, and in the middle of
// a call that moves many bytes, waits for a clock or for input that may block.
//
// Pointers, lengths and descriptors come from an untrusted guest. Each is
// checked before anything is done, and nothing is allocated by a length that
// was not checked against the guest's own memory or a constant.
//
// The interface is defined by legacy/preview1/docs.md of
// github.com/WebAssembly/WASI.
package wasi
