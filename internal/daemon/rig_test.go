package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	"github.com/sandboxd/sandboxd/internal/host"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// cache keeps what the tests compile, for all of them.
var cache string

func TestMain(m *testing.M) {
	var err error
	if cache, err = os.MkdirTemp("", "sandboxd-daemon-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(cache)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const manifest = `name: %s
version: 1.0.0
module: demo.wasm
abi: command
tools:
  - name: %[1]s_save
    description: Makes a file.
    inputSchema: {type: object}
    annotations: {destructiveHint: false, idempotentHint: true, openWorldHint: false}
  - name: %[1]s_look
    description: Says that it reads.
    inputSchema: {type: object}
    annotations: {readOnlyHint: true}
requests:
  volumes: [{name: data, path: /data, access: write}]
limits: {timeout: 20s}
`

// writePackage lays out a package of two tools, NAME_save and NAME_look, which
// do the same.
func writePackage(t *testing.T, dir, name string, parts ...[]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string][]byte{"tool.yaml": fmt.Appendf(nil, manifest, name), "demo.wasm": w.Program(parts...)} {
		write(t, filepath.Join(dir, file), string(b))
	}
}

// write replaces a file as careful programs do.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// output is a buffer that a test reads while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// rig is a running daemon with a folder of its own.
type rig struct {
	t      *testing.T
	dir    string // holds sandboxd.yaml and the packages
	state  string
	url    string
	log    *output
	reload chan os.Signal
	stop   context.CancelFunc
	ended  chan error
}

// newRig returns a rig that is not started yet.
func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	return &rig{t: t, dir: dir, state: filepath.Join(dir, "state"), log: &output{}, reload: make(chan os.Signal), ended: make(chan error, 1)}
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// configure writes sandboxd.yaml.
func (r *rig) configure(text string) { write(r.t, r.path("sandboxd.yaml"), text) }

func source(path string) (*tool.Package, error) { return tool.Load(path, nil) }

// sources reads the packages of a configuration.
func sources(c *config.Config) (out []daemon.Source, err error) {
	for _, p := range c.Packages {
		src, err := source(p.Source)
		if err == nil {
			err = host.CheckSpec(src, p, c.Store != "")
		}
		out = append(out, daemon.Source{Package: src, Err: err})
	}
	return out, nil
}

// read returns what reads the configuration file, changed as told.
func (r *rig) read(change func(*config.Config)) func() (*config.Config, error) {
	return func() (*config.Config, error) {
		c, err := config.Load(r.path("sandboxd.yaml"))
		if err == nil {
			change(c)
		}
		return c, err
	}
}

func (r *rig) options() daemon.Options {
	return daemon.Options{
		Config:  r.read(func(c *config.Config) { c.Listen.HTTP = "127.0.0.1:0" }),
		Sources: sources,
		Source:  source,
		State:   r.state,
		Cache:   cache,
		Watch:   []string{r.path("sandboxd.yaml")},
		Reload:  r.reload,
		HTTP:    true,
		Logger:  slog.New(slog.NewTextHandler(r.log, nil)),
		Version: "test",
	}
}

// start runs the daemon and waits until it is ready, or has ended.
func (r *rig) start(o daemon.Options) *rig {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	listening := make(chan string, 1)
	told := o.Started
	o.Started = func(http, metrics string) {
		if told != nil {
			told(http, metrics)
		}
		listening <- "http://" + strings.Replace(http, "[::]", "127.0.0.1", 1)
	}
	ended := make(chan error, 1)
	r.ended = ended
	go func() { ended <- daemon.Run(ctx, o) }()
	r.t.Cleanup(func() { r.end() })
	select {
	case r.url = <-listening:
	case err := <-r.ended:
		r.ended <- err
		return r
	}
	r.eventually("ready", func() bool { status, _ := r.get("/readyz"); return status == http.StatusOK || len(r.ended) > 0 })
	return r
}

// end stops the daemon and returns how it ended.
func (r *rig) end() error {
	r.stop()
	err := <-r.ended
	r.ended <- err
	return err
}

// get returns status and body of a path.
func (r *rig) get(path string, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(res.Body)
	return res.StatusCode, b.String()
}

// eventually waits until the condition holds.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not in 30 s; log:\n%s", what, r.log)
		}
	}
}

// metric waits until /metrics has the line.
func (r *rig) metric(line string) {
	r.t.Helper()
	r.eventually(line, func() bool { _, body := r.get("/metrics"); return strings.Contains(body, line+"\n") })
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(req)
}

// connect returns a client of the daemon's MCP endpoint.
func (r *rig) connect(token string) *mcp.ClientSession {
	r.t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: http.DefaultClient}
	if token != "" {
		transport.HTTPClient = &http.Client{Transport: bearer(token)}
	}
	return r.session(transport, nil)
}

func (r *rig) session(transport mcp.Transport, o *mcp.ClientOptions) *mcp.ClientSession {
	r.t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(r.t.Context(), transport, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close(); http.DefaultClient.CloseIdleConnections() })
	return s
}

// call returns the text of a call's result and whether it is an error.
func (r *rig) call(s *mcp.ClientSession, name string) (text string, failed bool) {
	r.t.Helper()
	res, err := s.CallTool(r.t.Context(), &mcp.CallToolParams{Name: name})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, res.IsError
}

func (r *rig) tools(s *mcp.ClientSession) string {
	r.t.Helper()
	res, err := s.ListTools(r.t.Context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, t := range res.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// made looks for what a call of package a made in a principal's managed volume.
func (r *rig) made(principal string) error {
	s, err := sqlite.Open(r.t.Context(), sqlite.Options{Folder: r.state})
	if err != nil {
		return err
	}
	defer s.Close()
	now, err := s.Snapshot(r.t.Context())
	if err != nil {
		return err
	}
	tree := stored.New(r.t.Context(), stored.Options{
		Reader: stored.At(now), Blobs: s, Space: stored.SpaceOf(principal, "a", "data"),
	})
	_, _, err = tree.Lstat(w.Created)
	return err
}
