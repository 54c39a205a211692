package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// waiting is a package whose one tool runs until its context ends or it is
// released.
type waiting struct {
	started chan struct{}
	release chan struct{}
	ended   chan error // the cause of the context's end, nil after a release
}

func newWaiting() *waiting {
	return &waiting{make(chan struct{}, 100), make(chan struct{}), make(chan error, 100)}
}

func (w *waiting) Name() string          { return "p" }
func (w *waiting) Source() *tool.Package { return &tool.Package{Manifest: tool.Manifest{Name: "p"}} }

func (w *waiting) Tools() []*runtime.Tool {
	return []*runtime.Tool{{
		Definition: tool.Definition{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Listed:     capabilities.Claim{}.Effective(),
	}}
}

func (w *waiting) Call(ctx context.Context, _ runtime.Request) *runtime.Result {
	w.started <- struct{}{}
	r := &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: runtime.Output{Content: []json.RawMessage{json.RawMessage(`{"type":"text","text":"done"}`)}}}
	select {
	case <-ctx.Done():
		r.Outcome = runtime.Timeout
		w.ended <- context.Cause(ctx)
	case <-w.release:
		w.ended <- nil
	}
	return r
}

func (w *waiting) cause(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("call does not end")
		return nil
	}
}

func newWaitingServer(t *testing.T) (*Server, *waiting) {
	t.Helper()
	w := newWaiting()
	s, err := New(Options{Packages: []Package{w}})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// Over streams, and over HTTP by 2026-07-28, the SDK's client cancels in the way
// of its version.
func TestCancelBySDKClient(t *testing.T) {
	for _, c := range []struct {
		version string
		http    bool
	}{{"2025-11-25", false}, {"2026-07-28", false}, {"2026-07-28", true}, {"2025-11-25", true}} {
		s, w := newWaitingServer(t)
		var transport mcp.Transport
		if c.http {
			ts := httptest.NewServer(s.Handler(HTTPOptions{Authenticate: Everybody}))
			defer ts.Close()
			transport = &mcp.StreamableClientTransport{Endpoint: ts.URL}
		} else {
			serverIn, clientOut := io.Pipe()
			clientIn, serverOut := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
			defer func() {
				clientOut.Close()
				clientIn.Close()
				<-done
			}()
			transport = &mcp.IOTransport{Reader: clientIn, Writer: clientOut}
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
			Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-w.started
			cancel()
		}()
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := w.cause(t); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: cause %v", c, err)
		}
		// The session goes on.
		close(w.release)
		if res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"}); err != nil || res.IsError {
			t.Errorf("%+v: next call: %+v, %v", c, res, err)
		}
		session.Close()
	}
}

// legacyClient sends what a client of 2025-11-25 does over HTTP.
type legacyClient struct {
	t          *testing.T
	url, token string
	session    string
}

func (c *legacyClient) send(ctx context.Context, body string) (*http.Response, error) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	r.Header.Set("Authorization", c.token)
	return http.DefaultClient.Do(r)
}

// call begins a call and returns what its answer comes to.
func (c *legacyClient) call(ctx context.Context, id string) <-chan string {
	out := make(chan string, 1)
	go func() {
		res, err := c.send(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"wait"}}`)
		if err != nil {
			out <- "error: " + err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		out <- string(b)
	}()
	return out
}

func (c *legacyClient) cancel(id string) {
	c.t.Helper()
	res, err := c.send(c.t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	if err != nil {
		c.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		c.t.Errorf("cancelled: %d", res.StatusCode)
	}
}

var sessionA, sessionB = strings.Repeat("A", 26), strings.Repeat("B", 26)

func serveAuthenticated(t *testing.T, s *Server) string {
	t.Helper()
	ts := httptest.NewServer(s.Handler(HTTPOptions{Authenticate: func(r *http.Request) (string, error) {
		return r.Header.Get("Authorization"), nil
	}}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// A cancellation over HTTP ends the request that it means, and none of another
// principal, session or id.
func TestCancelOverHTTPMeansOneRequest(t *testing.T) {
	s, w := newWaitingServer(t)
	url := serveAuthenticated(t, s)
	alice := &legacyClient{t, url, "alice", sessionA}
	answer := alice.call(t.Context(), "1")
	<-w.started
	for _, other := range []struct {
		client legacyClient
		id     string
	}{
		{legacyClient{t, url, "bob", sessionA}, "1"},
		{legacyClient{t, url, "alice", sessionB}, "1"},
		{legacyClient{t, url, "alice", ""}, "1"},
		{legacyClient{t, url, "alice", "../" + sessionA}, "1"},
		{*alice, "2"},
		{*alice, `"1"`},
		{*alice, "null"},
	} {
		other.client.cancel(other.id)
	}
	select {
	case err := <-w.ended:
		t.Fatalf("call ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	alice.cancel("1")
	if err := w.cause(t); !errors.Is(err, ErrCancelled) {
		t.Errorf("cause: %v", err)
	}
	<-answer
	if n := s.flights.running(); n != 0 {
		t.Errorf("%d requests are remembered", n)
	}
}

// One id names one request of a session: another that runs beside it is refused,
// one after it is not.
func TestFlightIDsAreUsedOnce(t *testing.T) {
	s, w := newWaitingServer(t)
	c := &legacyClient{t, serveAuthenticated(t, s), "alice", sessionA}
	first := c.call(t.Context(), `"x"`)
	<-w.started
	if answer := <-c.call(t.Context(), `"x"`); !strings.Contains(answer, "-32600") {
		t.Errorf("second of the id: %s", answer)
	}
	other := &legacyClient{t, c.url, "bob", sessionA}
	second := other.call(t.Context(), `"x"`)
	<-w.started
	close(w.release)
	for _, answer := range []string{<-first, <-second, <-c.call(t.Context(), `"x"`)} {
		if !strings.Contains(answer, "done") {
			t.Errorf("%s", answer)
		}
	}
}

// A client of 2025-11-25 that loses its connection has not cancelled, and can
// still do so.
func TestDisconnectIsNoCancelBefore2026(t *testing.T) {
	s, w := newWaitingServer(t)
	c := &legacyClient{t, serveAuthenticated(t, s), "alice", sessionA}
	ctx, leave := context.WithCancel(t.Context())
	answer := c.call(ctx, "1")
	<-w.started
	leave()
	<-answer
	select {
	case err := <-w.ended:
		t.Fatalf("call ended with the connection: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	c.cancel("1")
	if err := w.cause(t); !errors.Is(err, ErrCancelled) {
		t.Errorf("cause: %v", err)
	}
}

// The end of a server over streams reaches calls with its cause.
func TestStopCause(t *testing.T) {
	s, w := newWaitingServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	defer client.Close()
	go func() {
		fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		fmt.Fprintln(client, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`)
		<-w.started
		cancel()
	}()
	if err := s.ServeStdio(ctx, in, io.Discard); err != nil {
		t.Error(err)
	}
	if err := w.cause(t); !errors.Is(err, ErrStopped) || !errors.Is(err, context.Canceled) {
		t.Errorf("cause: %v", err)
	}
}

// A client that takes no answers does not keep a server over streams from
// stopping.
func TestStopWithoutReader(t *testing.T) {
	s, w := newWaitingServer(t)
	s.stopGrace = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	silent, out := io.Pipe()
	defer client.Close()
	defer silent.Close()
	go func() {
		fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		<-w.started
		cancel()
	}()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(ctx, in, out) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("server does not stop")
	}
	if err := w.cause(t); !errors.Is(err, ErrStopped) {
		t.Errorf("cause: %v", err)
	}
}
