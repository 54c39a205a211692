package daemon_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// The host's own tools are served as the configuration says, from a reload on too,
// and undo what was called there.
func TestHostToolsOfConfiguration(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("demo"), "demo", w.Create())
	packages := fmt.Sprintf("packages: [{source: %q}]\n", r.path("demo"))
	r.configure(packages)
	r.start(r.options())
	c := r.connect("")
	listed := func() (names []string) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tl := range list.Tools {
			names = append(names, tl.Name)
		}
		return names
	}
	if names := listed(); slices.Contains(names, "sandboxd_undo") {
		t.Fatalf("nobody asked for it: %v", names)
	}
	r.configure(packages + "hostTools: [sandboxd_undo, sandboxd_changes]\n")
	r.eventually("host tools", func() bool { return len(listed()) == 4 })
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo_save"})
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	id := res.Meta["dev.sandboxd/call"].(map[string]any)["id"]
	res, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "sandboxd_undo", Arguments: map[string]any{"callId": id}})
	if err != nil || res.IsError {
		t.Errorf("undo: %+v, %v", res, err)
	}
	r.configure(packages)
	r.eventually("no host tools", func() bool { return len(listed()) == 2 })
}
