package report

import "fmt"

// Names of rows that goals are computed from.
const (
	Native       = "native Go handler"
	CImage       = "C reactor, image"
	CNew         = "C reactor, new instance"
	CLive        = "C reactor, live instance"
	GoImage      = "Go reactor, image"
	GoNew        = "Go reactor, new instance"
	CMetered     = "C reactor, live instance, rewritten"
	GoMetered    = "Go reactor, live instance, rewritten"
	GoLive       = "Go reactor, live instance"
	CommandImage = "Go command, image"
	CommandNew   = "Go command, new instance"
	JSImage      = "QuickJS, script as command, image"
	JSNew        = "QuickJS, script as command, new instance"
	PythonImage  = "CPython, script as command, image"
	PythonNew    = "CPython, script as command, new instance"
	ExtismC      = "Extism C, reused"
	ExtismGo     = "Extism Go, reused"
	ProcessC     = "process per call, static C"
	ProcessGo    = "process per call, Go"
	BwrapC       = "process per call, static C, bubblewrap"
	BwrapGo      = "process per call, Go, bubblewrap"

	HTTPNative = "native Go handler in sandboxd's server"
	HTTPC      = "C reactor in sandboxd's server"
	HTTPGo     = "Go reactor in sandboxd's server"

	SandboxdStdio   = "sandboxd, stdio"
	SandboxdHTTP    = "sandboxd, HTTP"
	SandboxdCStdio  = "sandboxd, C reactor, stdio"
	SandboxdCHTTP   = "sandboxd, C reactor, HTTP"
	SandboxdC100    = "sandboxd, C reactor, GOGC 100, HTTP"
	SandboxdCommand = "sandboxd, Go command, stdio"
	StockStdio      = "stock go-sdk server, stdio"
	StockHTTP       = "stock go-sdk server, HTTP"
	StockStdio400   = "stock go-sdk server, GOGC 400, stdio"
	NodeStdio       = "Node reference server, stdio"
	NodeHTTP        = "Node reference server, HTTP"

	Sandboxd20 = "sandboxd, 20 approved packages"

	LoopPlain    = "wazero, cannot be interrupted"
	LoopWazero   = "wazero, WithCloseOnContextDone"
	LoopMetered  = "wazero, rewritten as sandboxd does it"
	LoopSandboxd = "sandboxd, a whole call"
)

// EngineTable is the ID of a table of the engine, without MCP.
func EngineTable(tool string, callers int) string { return fmt.Sprintf("engine-%s-%d", tool, callers) }

// MCPTable is the ID of a table of servers.
func MCPTable(tool, protocol string, callers int) string {
	return fmt.Sprintf("mcp-%s-%s-%d", tool, protocol, callers)
}

// IDs of the other tables.
const (
	ResetTable = "reset"
	StartTable = "start"
)

// LoopTable is the ID of the table of a hot loop.
func LoopTable(name string) string { return "loop-" + name }

// SameServerTable is the ID of the table of tools in one server over HTTP.
func SameServerTable(callers int) string { return fmt.Sprintf("same-server-%d", callers) }

// ResetRow is the name of the row of so many dirty pages.
func ResetRow(pages int) string { return fmt.Sprintf("%d dirty pages", pages) }

// Protocol is the version that the tables are of, where they name no other.
const Protocol = "2025-11-25"
