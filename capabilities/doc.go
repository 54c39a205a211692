// Package capabilities is the law of sandboxd as values: what a tool claims,
// what a call is granted, what it attempts, and what is decided about it.
//
// The package is pure. It imports the standard library only, touches neither
// files nor network nor clock, and keeps no global state: authority is a value
// that arrives as a parameter.
//
// The rules come from the tool annotations of the Model Context Protocol
// (ToolAnnotations in schema.ts, unchanged between 2025-11-25 and 2026-07-28).
package capabilities
