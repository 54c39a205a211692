package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// native has the same tools as Go functions of the server's own process: no
// sandbox, no transaction.
type native struct {
	dir   string
	tools []*runtime.Tool
}

func newNative(dir string) *native {
	n := &native{dir: dir}
	for _, d := range []tool.Definition{
		definition("echo", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		definition("read_file", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
	} {
		e := d.Claim.Effective()
		n.tools = append(n.tools, &runtime.Tool{Definition: d, Effective: e, Listed: e.Listed(capabilities.Judges{})})
	}
	return n
}

func (n *native) Name() string           { return "native" }
func (n *native) Tools() []*runtime.Tool { return n.tools }

func (n *native) Source() *tool.Package {
	return &tool.Package{Manifest: tool.Manifest{Name: "native"}, ModuleDigest: "sha256:00"}
}

// Call answers as the guest does.
func (n *native) Call(_ context.Context, r runtime.Request) *runtime.Result {
	var in struct{ Text, Name string }
	res := &runtime.Result{CallID: "native", Outcome: runtime.OK}
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		res.Outcome, res.Err = runtime.ToolError, err
		return res
	}
	text := in.Text
	if r.Tool == "read_file" {
		b, err := os.ReadFile(filepath.Join(n.dir, filepath.Base(in.Name)))
		if err != nil {
			res.Outcome, res.Err = runtime.ToolError, err
			return res
		}
		text = string(b)
	}
	content, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		res.Outcome, res.Err = runtime.HostError, err
		return res
	}
	res.Output.Content = []json.RawMessage{content}
	return res
}
