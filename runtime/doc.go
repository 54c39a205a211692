// Package runtime runs tools: it embeds the WebAssembly engine, gives each call
// an instance in a fresh state and the capabilities that its claim allows, judges what the
// call did, and commits or drops it as a whole.
//
// Data goes one way: a [Request] enters [Package.Call]; the engine takes an
// instance, puts the call's state into its slot, and calls the guest; the guest
// reaches the world through package runtime/wasi, which asks package
// capabilities/files, which asks the call's ledger and acts on the call's
// overlay; package capabilities/tx turns the overlay into a change and applies
// it; a [Result] comes back.
package runtime

// MetaPrefix is the prefix of the project's keys in MCP's _meta. Its second
// label is neither mcp nor modelcontextprotocol, which the specification
// reserves (basic/index, "_meta").
const MetaPrefix = "dev.sandboxd/"
