package daemon_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
)

func TestServe(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Create(), w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	s := r.connect("")
	if got := r.tools(s); got != "a_look a_save" {
		t.Errorf("tools %s", got)
	}
	if text, failed := r.call(s, "a_save"); failed || text != w.Said {
		t.Errorf("honest call: %q, %t", text, failed)
	}
	if text, failed := r.call(s, "a_look"); !failed || strings.Contains(text, w.Said) {
		t.Errorf("lie: %q, %t", text, failed)
	}
	r.metric(`sandboxd_calls_total{outcome="ok",tool="a_save"} 1`)
	r.metric(`sandboxd_calls_total{outcome="violation",tool="a_look"} 1`)
	r.metric(`sandboxd_violations_total{hint="readOnlyHint",operation="write",tool="a_look"} 1`)
	if status, _ := r.get("/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if n := r.records(audit.Filter{Violations: true}); n != 1 {
		t.Errorf("%d records of violations", n)
	}
	if err := r.made("local"); err != nil {
		t.Errorf("what the honest call made: %v", err)
	}
}

// audited reads the audit log.
func (r *rig) audited(f audit.Filter, each func(audit.Record)) {
	r.t.Helper()
	s, err := sqlite.Open(r.t.Context(), sqlite.Options{Folder: r.state})
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	skipped, err := audit.Read(r.t.Context(), s, f, func(rec audit.Record) error { each(rec); return nil })
	if err != nil || skipped > 0 {
		r.t.Fatalf("%d records skipped, %v", skipped, err)
	}
}

func (r *rig) records(f audit.Filter) (n int) {
	r.t.Helper()
	r.audited(f, func(audit.Record) { n++ })
	return n
}

// A package that cannot be loaded keeps no other from being served; where none
// can be, the daemon ends and says why.
func TestStartWithBadPackages(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("bad"), "bad")
	write(t, r.path("bad/demo.wasm"), string(w.Module{Funcs: []w.Func{{Import: "env", Name: "x"}, {Name: "_start"}}}.Encode()))
	r.configure("packages: [{source: ./bad}, {source: ./a}]\n")
	r.start(r.options())
	if got := r.tools(r.connect("")); got != "a_look a_save" {
		t.Errorf("tools %s", got)
	}
	if !strings.Contains(r.log.String(), "package is not served") {
		t.Errorf("log: %s", r.log)
	}
	r.configure("packages: [{source: ./bad}, {source: ./a, mode: report}]\n")
	r.metric(`sandboxd_config_reloads_total{result="ok"} 1`)
	if err := r.end(); err != nil {
		t.Error(err)
	}
	r.configure("packages: [{source: ./bad}]\n")
	if err := r.start(r.options()).end(); !errors.Is(err, daemon.ErrNothingServed) {
		t.Errorf("error %v", err)
	}
}

// A listener that is in use, or a configuration that is wrong, is an error.
func TestStartRefused(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	o := newRig(t)
	o.configure("packages: [{source: " + r.path("a") + "}]\nlisten: {http: " + strings.TrimPrefix(r.url, "http://") + "}\n")
	options := o.options()
	options.Config = o.read(func(*config.Config) {})
	if err := o.start(options).end(); err == nil {
		t.Error("an address in use is taken")
	}
	o.configure("packages: 1\n")
	if err := o.start(options).end(); err == nil {
		t.Error("a wrong configuration is taken")
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Create(), w.Say(1))
	token, hash, err := config.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	r.configure(fmt.Sprintf("packages: [{source: ./a}]\nprincipals: [{name: alice, token: \"sha256:%x\"}]\n", hash))
	o := r.options()
	var metricsURL string
	o.Config = r.read(func(c *config.Config) { c.Listen.HTTP, c.Listen.Metrics = "127.0.0.1:0", "localhost:0" })
	o.Started = func(_, metrics string) { metricsURL = "http://" + metrics }
	r.start(o)
	for path, want := range map[string]int{"/metrics": http.StatusNotFound, "/healthz": http.StatusOK, "/readyz": http.StatusOK} {
		if status, _ := r.get(path); status != want {
			t.Errorf("%s without token: %d", path, status)
		}
	}
	r.url, metricsURL = metricsURL, r.url
	if status, _ := r.get("/metrics"); status != http.StatusUnauthorized {
		t.Errorf("metrics without token: %d", status)
	}
	if status, body := r.get("/metrics", "Authorization", "Bearer "+token); status != http.StatusOK || !strings.Contains(body, "sandboxd_build_info") {
		t.Errorf("metrics with token: %d", status)
	}
	r.url = metricsURL
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, wrong := range []string{"", "sbx_wrong"} {
		transport := &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(wrong)}}
		if s, err := client.Connect(t.Context(), transport, nil); err == nil {
			s.Close()
			t.Errorf("token %q is taken", wrong)
		}
	}
	if text, failed := r.call(r.connect(token), "a_save"); failed {
		t.Error(text)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	var principal string
	r.audited(audit.Filter{}, func(rec audit.Record) {
		if rec.Type == audit.TypeCall {
			principal = rec.Principal
		}
	})
	if principal != "alice" {
		t.Errorf("principal %q", principal)
	}
	if err := r.made("alice"); err != nil {
		t.Errorf("what alice's call made: %v", err)
	}
}

// A call that runs when the daemon is told to stop comes to its end; one that
// runs on past the grace period is stopped.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		grace string
		parts [][]byte
		ok    bool
		says  string
	}{
		"ends":    {"20s", [][]byte{w.Work(3e8), w.Create(), w.Say(1)}, true, w.Said},
		"stopped": {"100ms", [][]byte{w.Create(), w.Forever}, false, "the host is shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			writePackage(t, r.path("a"), "a", c.parts...)
			r.configure("packages: [{source: ./a}]\ngrace: " + c.grace + "\n")
			r.start(r.options())
			s := r.connect("")
			answered := make(chan string, 1)
			go func() {
				text, _ := r.call(s, "a_save")
				answered <- text
			}()
			r.metric("sandboxd_calls_in_flight 1")
			if err := r.end(); err != nil {
				t.Error(err)
			}
			if text := <-answered; !strings.Contains(text, c.says) {
				t.Errorf("answer %q", text)
			}
			err := r.made("local")
			if (err == nil) != c.ok {
				t.Errorf("what the call made: %v", err)
			}
		})
	}
}

// An interrupt while packages are loaded is a clean end; it is no fault of the
// packages.
func TestStopWhileStarting(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	o := r.options()
	ctx, cancel := context.WithCancel(t.Context())
	o.Observer = runtime.Observer{Compile: func(string, int) func() { cancel(); return nil }}
	o.Cache = t.TempDir()
	if err := daemon.Run(ctx, o); err != nil {
		t.Error(err)
	}
	if n := r.records(audit.Filter{}); n > 1 { // at most the approval
		t.Errorf("%d records", n)
	}
}

// A daemon over stdio ends with its client.
func TestStdio(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	o := daemon.Options{
		Config: func() (*config.Config, error) {
			c := config.Default()
			c.Packages = []config.Package{{Source: r.path("a")}}
			return c, nil
		},
		Sources: sources, Source: source, State: r.state, Cache: cache,
	}
	client, server := newPipes()
	o.Stdio = &daemon.Stdio{In: server.in, Out: server.out}
	go func() { r.ended <- daemon.Run(context.Background(), o) }()
	s := r.session(&mcp.IOTransport{Reader: client.in, Writer: client.out}, nil)
	if text, failed := r.call(s, "a_look"); failed || text != w.Said {
		t.Errorf("%q, %t", text, failed)
	}
	s.Close()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// A call's span belongs to the trace of its client.
func TestTraces(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	id, err := hex.DecodeString(trace)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var received []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(req.Body); err != nil {
				t.Error(err)
				return
			}
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		received = append(received, b...)
	}))
	defer receiver.Close()
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Create(), w.Say(1))
	r.configure("packages: [{source: ./a}]\ntraces: {endpoint: \"" + receiver.URL + "\"}\n")
	r.start(r.options())
	_, err = r.connect("").CallTool(t.Context(), &mcp.CallToolParams{
		Name: "a_look", Meta: mcp.Meta{"traceparent": "00-" + trace + "-b7ad6b7169203331-01"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil { // what is not sent yet is sent now
		t.Error(err)
	}
	if !bytes.Contains(received, id) || !bytes.Contains(received, []byte("a_look")) {
		t.Errorf("received %d bytes, none of the trace", len(received))
	}
}
