package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var allHostTools = []string{mcpserver.ToolPreview, mcpserver.ToolUndo, mcpserver.ToolChanges}

const (
	metaCall      = runtime.MetaPrefix + "call"
	metaViolation = runtime.MetaPrefix + "violation"
	metaKey       = runtime.MetaPrefix + "idempotencyKey"
)

// deskCache keeps what the tests of the desk build and compile.
var deskCache = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sandboxd-desk-")
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := deskCache(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// desk is the package of testdata/desk in a real engine, served with the host's
// own tools.
type desk struct {
	engine *runtime.Engine
	pkg    *runtime.Package
	server *mcpserver.Server
	url    string // who calls is what the header Authorization says
}

func newDesk(t *testing.T, b runtime.Binding) *desk {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	cache, err := deskCache()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Folder: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	d := &desk{}
	d.engine, err = runtime.New(t.Context(), runtime.Options{Store: store, State: state, Cache: filepath.Join(cache, "compiled")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d.pkg = d.load(t, b)
	d.server, err = mcpserver.New(mcpserver.Options{
		Packages: mcpserver.Packages(d.pkg), HostTools: allHostTools, Host: d.engine, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	d.url = d.listen(t, d.server)
	return d
}

func (d *desk) listen(t *testing.T, s *mcpserver.Server) string {
	t.Helper()
	return serveHTTP(t, s, mcpserver.HTTPOptions{
		Authenticate: func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil },
	}).URL
}

func (d *desk) load(t *testing.T, b runtime.Binding) *runtime.Package {
	t.Helper()
	cache, err := deskCache()
	if err != nil {
		t.Fatal(err)
	}
	builder, err := build.New(build.Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	src, err := tool.Load(filepath.Join("testdata", "desk"), builder.Func(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.engine.Load(t.Context(), src, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// as is who calls.
type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// user is one principal's MCP client.
type user struct {
	t       *testing.T
	session *mcp.ClientSession
}

func (d *desk) user(t *testing.T, url, version, principal string) *user {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: as(principal)}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &user{t, session}
}

// answered is a result as a client has it.
type answered struct {
	isError    bool
	text       string
	structured map[string]any
	call       struct {
		ID         string
		Committed  bool
		Remembered bool
		Effects    []struct{ Verb, Kind, Object string }
	}
	violation *struct{ Hint, Operation, Object, Phase, Detail string }
}

func (u *user) try(name string, arguments map[string]any, key any) (*answered, error) {
	p := &mcp.CallToolParams{Name: name, Arguments: arguments}
	if key != nil {
		p.Meta = mcp.Meta{metaKey: key}
	}
	res, err := u.session.CallTool(u.t.Context(), p)
	if err != nil {
		return nil, err
	}
	a := &answered{isError: res.IsError}
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			a.text += text.Text
		}
	}
	a.structured, _ = res.StructuredContent.(map[string]any)
	for key, into := range map[string]any{metaCall: &a.call, metaViolation: &a.violation} {
		b, err := json.Marshal(res.Meta[key])
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, into); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// call calls a tool, which must be answered with a result.
func (u *user) call(name string, arguments map[string]any, key any) *answered {
	u.t.Helper()
	a, err := u.try(name, arguments, key)
	if err != nil {
		u.t.Fatalf("%s: %v", name, err)
	}
	return a
}

// does calls a tool, which must end well.
func (u *user) does(name string, arguments map[string]any) *answered {
	u.t.Helper()
	a := u.call(name, arguments, nil)
	if a.isError {
		u.t.Fatalf("%s: %s", name, a.text)
	}
	return a
}

// read returns a file of the desk.
func (u *user) read(file string) string {
	u.t.Helper()
	return u.does("read", map[string]any{"file": file}).text
}

func put(file, text string) map[string]any { return map[string]any{"file": file, "text": text} }

// inBothEras runs a test as a principal of its own in each era.
func inBothEras(t *testing.T, d *desk, test func(t *testing.T, u *user)) {
	t.Helper()
	for i, version := range versions {
		t.Run(version, func(t *testing.T) { test(t, d.user(t, d.url, version, []string{"ada", "bea"}[i])) })
	}
}
