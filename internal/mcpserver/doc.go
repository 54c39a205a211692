// Package mcpserver serves loaded packages over the Model Context Protocol. It
// is the only importer of the MCP SDK; none of the SDK's types leave it.
//
// It uses the SDK's untyped tool handlers and keeps their four traps shut: a
// handler that panics would end the process, so would a nil result; an error of
// another type goes out with code 0; a result that two calls share is written
// to by both.
package mcpserver
