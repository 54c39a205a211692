// Package kv is the keys of a tool's package, for a tool in Go: values by name,
// kept from call to call. A package that requests `kv: true` in its manifest has
// them.
//
// Keys belong to the caller and the package. A call reads them as they were at
// one moment, with its own writes on top, and what it writes is kept when the
// call ends well. A read-only tool may get and scan; putting, deleting, appending
// and incrementing stop it. A tool that only adds may put new keys, and append to
// and increment any.
//
// A key is 1 to 1024 bytes, any bytes. A value is up to 1 MiB.
//
// Built for the machine the keys are in memory, so that handlers are tested with
// `go test`; see Reset.
package kv
