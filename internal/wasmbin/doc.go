// Package wasmbin reads WebAssembly binaries that nobody vouches for, and
// rewrites them so that a host can bound and interrupt them.
//
// It follows the WebAssembly Core Specification 2.0, chapter 5 (binary
// format). Every count is checked against the bytes that are left before
// anything is allocated for it, so that [Parse] can stand in front of readers
// that trust counts. It reckons what each function costs a compiler too, and
// refuses what would take it too long or too much memory; so instructions
// beyond the specification are refused. It checks structure, not types: a
// module that it accepts may still be invalid.
package wasmbin
