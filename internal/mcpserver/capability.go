package mcpserver

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// declared returns which capabilities that a tool may require the client has
// declared: with the request by 2026-07-28, before it when it initialized else.
func declared(req *mcp.CallToolRequest, c caller) []string {
	names := slices.Clone(c.capabilities)
	d := req.ClientCapabilities()
	if d == nil {
		return names
	}
	if d.Elicitation != nil {
		names = append(names, tool.ClientElicitation)
	}
	//lint:ignore SA1019 deprecated by 2026-07-28, and declared by clients of both eras
	if d.RootsV2 != nil {
		names = append(names, tool.ClientRoots)
	}
	//lint:ignore SA1019 as above
	if d.Sampling != nil {
		names = append(names, tool.ClientSampling)
	}
	return names
}

// missingCapability is the answer to a client that lacks what a tool requires
// (2026-07-28, schema.ts, MissingRequiredClientCapabilityError). Over HTTP its
// status is 400. The data is not the SDK's type, whose roots are always there.
func missingCapability(m string, c *runtime.CapabilityError) error {
	required := map[string]struct{}{}
	for _, name := range c.Missing {
		required[name] = struct{}{}
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		return hostFault("")
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: m, Data: data}
}
