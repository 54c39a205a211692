package clients

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inspector is a version of the MCP Inspector's command line.
type inspector struct {
	name    string
	program []string // relative to where install.sh put it
	failed  int      // exit status after a result with isError
}

var inspectors = []inspector{
	{"1.0.3", []string{"inspector1", "cli", "build", "cli.js"}, 0},
	{"2.12.0", []string{"@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"}, 5},
}

// TestInspector drives a server that is configured as hosts configure servers.
func TestInspector(t *testing.T) {
	if *installed == "" {
		t.Skip("needs -clients, the folder that install.sh filled")
	}
	program := sandboxd(t)
	pages := program.Package(t, "guest")
	for _, i := range inspectors {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(i.name+"/"+transport, func(t *testing.T) {
				folder := t.TempDir()
				args := []string{"--volume", "pages/data=" + folder, pages}
				entry := map[string]any{}
				if transport == "http" {
					entry["type"], entry["url"] = "streamable-http", program.Serve(t, args...).URL
				} else {
					line := program.Command(t.TempDir(), append([]string{"serve", "--stdio"}, args...)...)
					entry["command"], entry["args"] = line[0], line[1:]
				}
				config := hostConfig(t, entry)
				i.inspect(t, config, folder)
			})
		}
	}
}

func (i inspector) inspect(t *testing.T, config, folder string) {
	var list struct{ Tools []listed }
	i.run(t, config, 0, &list, "tools/list")
	if !slices.ContainsFunc(list.Tools, func(l listed) bool { return l.String() == "erase_page false true true false" }) {
		t.Errorf("tools/list: %v", list.Tools)
	}
	var r result
	i.run(t, config, 0, &r, "tools/call", "--tool-name", "write_page", "--tool-arg", "name=a", "text=hello")
	if r.IsError || r.text() != "Wrote a." || !r.Meta.Call.Committed {
		t.Errorf("write_page: %+v", r)
	}
	r = result{}
	i.run(t, config, i.failed, &r, "tools/call", "--tool-name", "peek_page", "--tool-arg", "name=a")
	if !r.IsError || r.Meta.Violation == nil || r.Meta.Call.Committed {
		t.Errorf("peek_page: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(folder, "a")); err != nil {
		t.Errorf("page after a violation: %v", err)
	}
}

// run makes the Inspector carry out a method, and reads what it prints into v.
func (i inspector) run(t *testing.T, config string, status int, v any, method string, args ...string) {
	t.Helper()
	script := filepath.Join(append([]string{*installed, "node_modules"}, i.program...)...)
	line := append([]string{script, "--cli", "--config", config, "--server", "pages", "--method", method}, args...)
	cmd := exec.CommandContext(deadline(t), nodeIn(*installed), line...)
	cmd.Env = append(os.Environ(), "MCP_INSPECTOR_SECRET_STORE=memory")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != status {
		t.Errorf("%s %q: status %d, want %d\n%s%s", method, args, got, status, out, errs.String())
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Errorf("%s %q: %v\n%s%s", method, args, err, out, errs.String())
	}
}

// hostConfig writes the file in which hosts name their servers.
func hostConfig(t *testing.T, entry map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"pages": entry}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	write(t, file, b)
	return file
}
