package main

import (
	"context"
	"encoding/json"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// native has echo as a Go function of the server's own process: no sandbox, no
// transaction.
type native struct{ tools []*runtime.Tool }

func newNative() *native {
	d := tool.Definition{
		Name: "echo", Description: "Answers with its argument.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		Claim:       capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False},
	}
	e := d.Claim.Effective()
	return &native{[]*runtime.Tool{{Definition: d, Effective: e, Listed: e.Listed(capabilities.Judges{})}}}
}

func (n *native) Name() string           { return "native" }
func (n *native) Tools() []*runtime.Tool { return n.tools }

func (n *native) Source() *tool.Package {
	return &tool.Package{Manifest: tool.Manifest{Name: "native"}, ModuleDigest: "sha256:00"}
}

// Call answers as the guests do.
func (n *native) Call(_ context.Context, r runtime.Request) *runtime.Result {
	var in struct{ Text string }
	res := &runtime.Result{CallID: "native", Outcome: runtime.OK}
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		res.Outcome, res.Err = runtime.ToolError, err
		return res
	}
	content, err := json.Marshal(map[string]string{"type": "text", "text": in.Text})
	if err != nil {
		res.Outcome, res.Err = runtime.HostError, err
		return res
	}
	res.Output.Content = []json.RawMessage{content}
	return res
}
