// Package mcpserver serves loaded packages over the Model Context Protocol, over
// streams and over Streamable HTTP, to clients of 2026-07-28 and before. It is the
// only importer of the MCP SDK; none of the SDK's types leave it.
//
// It uses the SDK's untyped tool handlers and keeps their four traps shut: a
// handler that panics would end the process, so would a nil result; an error of
// another type goes out with code 0; a result that two calls share is written
// to by both.
//
// Over HTTP nothing of a client is kept between its requests, so any of several
// servers can answer the next one; what a client of 2025-11-25 declared is in the id
// of its session. What follows for such clients: they are not told when the list of
// tools changes, and are sent log messages from level info on, whatever they set.
package mcpserver
