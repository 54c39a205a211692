package snippets

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/clients"
)

// pageAddress is where the pages' daemon listens; the tests' is elsewhere.
const pageAddress = "127.0.0.1:8080"

// daemon is the daemon of docs/connect.md, and a token that it accepts.
type daemon struct {
	*clients.Daemon
	token string
}

// serveWithTokens serves the page's configuration, with a token of its own.
func serveWithTokens(t *testing.T) daemon {
	t.Helper()
	out, err := exec.Command(program.Path, "token", "alice").Output()
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`sbx_\S+`).FindString(string(out))
	hash := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	if token == "" || !hash.Match(out) {
		t.Fatalf("token alice: %q", out)
	}
	for _, b := range blocks(t, "docs/connect.md") {
		if b.file != "sandboxd.yaml" {
			continue
		}
		if len(hash.FindAllString(b.text, -1)) != 1 {
			t.Fatalf("want one principal in:\n%s", b.text)
		}
		file := filepath.Join(t.TempDir(), b.file)
		if err := os.WriteFile(file, []byte(hash.ReplaceAllString(b.text, hash.FindString(string(out)))), 0o600); err != nil {
			t.Fatal(err)
		}
		return daemon{program.Serve(t, "--config", file), token}
	}
	t.Fatal("docs/connect.md has no sandboxd.yaml")
	return daemon{}
}

// address returns where the daemon listens.
func (d daemon) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(d.URL, "http://"), "/mcp")
}

// connect connects to the page's URL with the page's header.
func (d daemon) connect(t *testing.T, url, authorization string) *mcp.ClientSession {
	t.Helper()
	if url != "http://"+pageAddress+"/mcp" {
		t.Errorf("URL %q, want that of the page's daemon", url)
	}
	if authorization != "Bearer "+d.token {
		t.Errorf("Authorization: %q, want the token as bearer", authorization)
	}
	return connect(t, &mcp.StreamableClientTransport{Endpoint: d.URL, HTTPClient: &http.Client{Transport: header(authorization)}})
}

// get returns what the daemon answers on a path.
func (d daemon) get(t *testing.T, path string) string {
	t.Helper()
	r, err := (&http.Client{Transport: header("Bearer " + d.token)}).Get("http://" + d.address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", path, r.Status, err)
	}
	return string(b)
}

// header is the value of the Authorization header of each request.
type header string

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(h))
	return http.DefaultTransport.RoundTrip(r)
}

// overStdio starts a command as a host does.
func overStdio(t *testing.T, command string, args ...string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), environment(t), os.Stderr
	return connect(t, &mcp.CommandTransport{Command: cmd})
}

func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "snippets", Version: "1.0.0"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// use lists the tools of guests/notes, calls one, and closes the session.
func use(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"add_note", "delete_note", "list_notes"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_notes", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := r.Content[0].(*mcp.TextContent); r.IsError || !ok || text.Text != "No notes saved." {
		t.Errorf("list_notes: %+v", r)
	}
}

// inShell runs a script and returns what it prints.
func inShell(t *testing.T, script string, env ...string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs a POSIX shell")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Env = append(environment(t), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
