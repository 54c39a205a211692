// Package hostmcp is the host side of sandboxd_mcp, by which a guest tells the
// client of its call how far it is, and writes to the client's log
// (docs/abi.md).
//
// As in package wasi nothing of a call is bound into the host functions: they
// find the call by the module that calls them. What a guest sends is checked and
// counted, and the guest is never told whether anybody listens.
package hostmcp
