// Package hostkv is the host side of sandboxd_kv, the keys of a package
// (docs/abi.md).
//
// As in package wasi nothing of a call is bound into the host functions: they
// find the call by the module that calls them. What a key operation comes to is
// judged by package kv; this package moves bytes between that and the memory of
// the guest. All pointers are checked before anything is asked or changed.
package hostkv
