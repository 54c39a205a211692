package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/pgtest"
)

var postgresBin = flag.String("postgres", "", "folder of the programs initdb and postgres, 14 or later; without it no command is tried with a server")

// onPostgres is a shell whose configuration names a server's database, with its
// password.
func onPostgres(t *testing.T) (s *shell, server *pgtest.Server, config string) {
	t.Helper()
	if *postgresBin == "" {
		t.Skip("-postgres names no folder of programs (Debian: /usr/lib/postgresql/15/bin of apt-get install postgresql)")
	}
	server = pgtest.Start(t, *postgresBin)
	config = filepath.Join(t.TempDir(), "sandboxd.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "store: %q\n", server.URL()), 0o600))
	return newShell(t), server, config
}

// Each command works on a store in PostgreSQL, and what two machines do is seen by
// both: here, two state folders.
func TestPostgres(t *testing.T) {
	s, server, config := onPostgres(t)
	other := newShell(t)
	pkg := newPackageOnly(t)
	said := ""
	try := func(s *shell, args ...string) string {
		t.Helper()
		code, out, diag := s.run(append([]string{"--config", config}, args...)...)
		said += out + diag
		if code != 0 {
			t.Fatalf("%q: status %d, %q, %q", args, code, out, diag)
		}
		return out
	}
	id := callID(t, try(s, "call", "-p", pkg, "--json", "save"))
	if out := try(other, "volume", "ls", "demo/data"); !strings.Contains(out, "new.txt") {
		t.Errorf("the other machine does not see what was saved: %q", out)
	}
	try(other, "undo", id)
	if out := try(s, "volume", "ls", "demo/data"); strings.Contains(out, "new.txt") {
		t.Errorf("the other machine's undo is not seen: %q", out)
	}
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("text"), 0o600))
	try(s, "volume", "import", "demo/data", folder, "--replace")
	if out := try(other, "volume", "cat", "demo/data", "a.txt"); out != "text" {
		t.Errorf("imported: %q", out)
	}
	if out := try(s, "log"); !strings.Contains(out, id) {
		t.Errorf("call %s is not in the log: %q", id, out)
	}
	try(s, "inspect", pkg)
	if strings.Contains(said, server.Password()) || strings.Contains(said, "store: postgres") {
		t.Errorf("the URL is shown: %q", said)
	}
	for _, name := range []string{"store.db", "blobs"} {
		if _, err := os.Stat(filepath.Join(s.state, name)); err == nil {
			t.Errorf("%s is in the state folder", name)
		}
	}
}

// While the server is away calls are faults of the host, with nothing saved, and
// go well again once it is back. The password is shown nowhere.
func TestPostgresGoesAway(t *testing.T) {
	s, server, config := onPostgres(t)
	pkg := newPackageOnly(t)
	manifest := filepath.Join(pkg, "tool.yaml")
	text, err := os.ReadFile(manifest)
	must(t, err)
	must(t, os.WriteFile(manifest, []byte(strings.Replace(string(text), "timeout: 1s", "timeout: 60s", 1)), 0o600))
	var log strings.Builder
	url, _, stop := s.started(&log, "MCP at ", "--config", config, "serve", "--http", "127.0.0.1:0", pkg)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	must(t, err)
	defer session.Close()
	call := func() (string, bool) {
		t.Helper()
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "save"})
		if err != nil {
			return err.Error(), true
		}
		var said strings.Builder
		for _, c := range r.Content {
			if c, ok := c.(*mcp.TextContent); ok {
				said.WriteString(c.Text)
			}
		}
		return said.String(), r.IsError
	}
	if said, failed := call(); failed {
		t.Fatal(said)
	}
	server.Stop()
	said, failed := call()
	if !failed || strings.Contains(said, server.Password()) {
		t.Errorf("without the server: %q, error %t", said, failed)
	}
	server.Restart()
	if said, failed := call(); failed {
		t.Errorf("the server is back: %q", said)
	}
	if body := scrape(t, url); !strings.Contains(body, `sandboxd_calls_total{outcome="host_error",tool="save"} 1`) ||
		!strings.Contains(body, `sandboxd_calls_total{outcome="ok",tool="save"} 2`) {
		t.Errorf("metrics: %s", body)
	}
	stop()
	_, records, _ := s.run("--config", config, "log", "--json")
	if strings.Contains(log.String()+records, server.Password()) {
		t.Errorf("the password is in the log: %s", log.String())
	}
}
