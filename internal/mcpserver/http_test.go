package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// recording returns a package of the tool "a" that hands its requests on.
func recording() (*fakePackage, chan runtime.Request) {
	seen := make(chan runtime.Request, 1000)
	p := &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{newTool("a", capabilities.Claim{})}}
	p.call = func(_ context.Context, r runtime.Request) *runtime.Result {
		seen <- r
		return &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: textOutput("done")}
	}
	return p, seen
}

// The SDK's own client lists and calls over HTTP in both eras, and leaves.
func TestHTTPWithSDKClient(t *testing.T) {
	for _, version := range versions {
		for _, asJSON := range []bool{false, true} {
			p, _ := recording()
			ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{JSONResponse: asJSON})
			c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
			session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: ts.URL}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatalf("%s: connect: %v", version, err)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Annotations.DestructiveHint == nil || list.Tools[0].Annotations.OpenWorldHint == nil {
				t.Errorf("%s: list: %+v, %v", version, list, err)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
			if err != nil || res.IsError {
				t.Errorf("%s: call: %+v, %v", version, res, err)
			}
			if err := session.Close(); err != nil {
				t.Errorf("%s: close: %v", version, err)
			}
		}
	}
}

func TestHTTPRefuses(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{MaxBody: 2000, MaxRequests: 4})
	call := request(legacy, 1, "tools/call", `{"name":"a"}`)
	for name, c := range map[string]struct {
		version, body string
		headers       []string
		want          int
	}{
		"other site":        {legacy, call, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"other site, fetch": {legacy, call, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"too large":         {legacy, request(legacy, 1, "tools/call", `{"name":"a","arguments":{"s":"`+strings.Repeat("x", 2000)+`"}}`), nil, http.StatusRequestEntityTooLarge},
		"no JSON":           {legacy, `hello`, nil, http.StatusBadRequest},
		"nothing":           {legacy, ``, nil, http.StatusBadRequest},
		"trailing":          {legacy, call + call, nil, http.StatusBadRequest},
		"empty batch":       {"", `[]`, nil, http.StatusBadRequest},
		"batch in 2025-11":  {legacy, "[" + call + "]", nil, http.StatusBadRequest},
		"batch too large":   {"", "[" + strings.Join([]string{call, call, call, call, call}, ",") + "]", nil, http.StatusServiceUnavailable},
		"form":              {legacy, call, []string{"Content-Type", "application/x-www-form-urlencoded"}, http.StatusUnsupportedMediaType},
		"unknown version":   {"2020-01-01", call, nil, http.StatusBadRequest},
	} {
		res, rs := post(t, ts.URL, c.version, c.body, c.headers...)
		if res.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %+v", name, res.StatusCode, c.want, rs)
		}
		if c.want == http.StatusServiceUnavailable && (res.Header.Get("Retry-After") == "" || len(rs) != 1 || rs[0].Error == nil || string(rs[0].ID) != "null") {
			t.Errorf("%s: %v, %+v", name, res.Header, rs)
		}
	}
	rebound := newPost(t, ts.URL, legacy, call)
	rebound.Host = "evil.example"
	if res, _ := do(t, rebound); res.StatusCode != http.StatusForbidden {
		t.Errorf("rebound name: %d", res.StatusCode)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		r := newPost(t, ts.URL, legacy, call)
		r.Method = method
		if res, _ := do(t, r); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST, DELETE" {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if len(seen) != 0 {
		t.Errorf("%d calls came through", len(seen))
	}
	if res, rs := post(t, ts.URL, legacy, call, "Origin", ts.URL); res.StatusCode != http.StatusOK || len(rs) != 1 || len(seen) != 1 {
		t.Errorf("own site: %d, %+v", res.StatusCode, rs)
	}
}

var errToken = errors.New("token SECRET is unknown")

func byToken(r *http.Request) (string, error) {
	switch r.Header.Get("Authorization") {
	case "Bearer alice-token":
		return "alice", nil
	case "Bearer bob-token":
		return "bob", nil
	case "Bearer nobody":
		return "", nil
	}
	return "", errToken
}

func TestHTTPAuthenticates(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{Authenticate: byToken})
	for _, version := range versions {
		body := request(version, 1, "tools/call", `{"name":"a"}`)
		for token, challenge := range map[string]string{
			"": "Bearer", "Bearer x": `Bearer error="invalid_token"`, "Bearer nobody": `Bearer error="invalid_token"`,
		} {
			r := newPost(t, ts.URL, version, body)
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
				r.Method, r.Body = method, io.NopCloser(strings.NewReader(body))
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusUnauthorized || res.Header.Get("WWW-Authenticate") != challenge || strings.Contains(string(b), "SECRET") {
					t.Errorf("%s with token %q: %d, %v, %s", method, token, res.StatusCode, res.Header, b)
				}
			}
		}
		// What the client says of itself in headers is not who it is.
		res, _ := post(t, ts.URL, version, body, "Authorization", "Bearer alice-token", "Principal", "bob", "X-Principal", "bob")
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", version, res.StatusCode)
		}
		if r := <-seen; r.Principal != "alice" {
			t.Errorf("%s: principal %q", version, r.Principal)
		}
	}
	if len(seen) != 0 {
		t.Errorf("%d calls of nobody", len(seen))
	}
}

// Without a way to authenticate nobody gets in.
func TestHTTPZeroOptions(t *testing.T) {
	p, seen := recording()
	ts := httptest.NewServer(newServer(t, p).Handler(mcpserver.HTTPOptions{}))
	defer ts.Close()
	for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}} {
		res, _ := post(t, ts.URL, legacy, request(legacy, 1, "tools/call", `{"name":"a"}`), headers...)
		if res.StatusCode != http.StatusUnauthorized || len(seen) != 0 {
			t.Errorf("%v: %d, %d calls", headers, res.StatusCode, len(seen))
		}
	}
}

// No header that a client can send has the name of one of ours.
func TestHTTPHeadersCannotBeForged(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	body := request(legacy, 1, "tools/call", `{"name":"a"}`)
	for _, forged := range []string{":principal: bob", " :principal: bob", ":flight: x", ":capability: sampling"} {
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", forged, len(body), body)
		b, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-seen:
			if r.Principal != "local" {
				t.Errorf("%q: principal %q", forged, r.Principal)
			}
		default:
			if !strings.Contains(string(b), "400 Bad Request") {
				t.Errorf("%q: %s", forged, b)
			}
		}
	}
}

// A session id is given to clients of before 2026-07-28 alone, and ending it is
// granted.
func TestHTTPSessions(t *testing.T) {
	p, _ := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	initialize := request("", 1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	ids := map[string]bool{}
	for range 10 {
		res, rs := post(t, ts.URL, "", initialize)
		if res.StatusCode != http.StatusOK || len(rs) != 1 || rs[0].Error != nil {
			t.Fatalf("initialize: %d, %+v", res.StatusCode, rs)
		}
		ids[res.Header.Get("Mcp-Session-Id")] = true
	}
	if len(ids) != 10 || ids[""] {
		t.Errorf("session ids: %v", ids)
	}
	for _, version := range versions {
		if res, _ := post(t, ts.URL, version, request(version, 1, "tools/list", "")); res.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session id on tools/list", version)
		}
	}
	if res, _ := post(t, ts.URL, modern, request(modern, 1, "server/discover", "")); res.StatusCode != http.StatusOK || res.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("discover: %d, %v", res.StatusCode, res.Header)
	}
	r := newPost(t, ts.URL, legacy, "")
	r.Method = http.MethodDelete
	if res, _ := do(t, r); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
}

// What a client may not know or send differently never differs between the two
// ways in: the arguments come to the engine byte by byte.
func TestHTTPArgumentsArriveAsSent(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	const arguments = `{"text":"a","text":"b","Text":"c","n":1.00000000000000000001,"e":1E2}`
	for _, version := range versions {
		post(t, ts.URL, version, request(version, 1, "tools/call", `{"name":"a","arguments":`+arguments+`}`))
		if r := <-seen; string(r.Arguments) != arguments {
			t.Errorf("%s: %s", version, r.Arguments)
		}
	}
}

func TestHTTPTraceContext(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	const (
		parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		other  = "00-11111111111111111111111111111111-2222222222222222-01"
	)
	headers := []string{"Traceparent", other, "Tracestate", "h=1"}
	for params, want := range map[string]runtime.TraceContext{
		`{"name":"a","_meta":{"traceparent":"` + parent + `","tracestate":"m=1"}}`: {Traceparent: parent, Tracestate: "m=1"},
		`{"name":"a","_meta":{"traceparent":"` + parent + `"}}`:                    {Traceparent: parent},
		`{"name":"a","_meta":{"tracestate":"m=1"}}`:                                {Traceparent: other, Tracestate: "h=1"},
		`{"name":"a","_meta":{"traceparent":7}}`:                                   {Traceparent: other, Tracestate: "h=1"},
		`{"name":"a","_meta":{"traceparent":"` + strings.Repeat("0", 1000) + `"}}`: {Traceparent: other, Tracestate: "h=1"},
		`{"name":"a"}`: {Traceparent: other, Tracestate: "h=1"},
	} {
		for _, version := range versions {
			post(t, ts.URL, version, request(version, 1, "tools/call", params), headers...)
			if r := <-seen; r.Trace != want {
				t.Errorf("%s: %s: %+v", version, params, r.Trace)
			}
		}
	}
	c := connect(t, newServer(t, p), "")
	if _, err := c.Call(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	if r := <-seen; r.Trace != (runtime.TraceContext{}) || r.Principal != "" {
		t.Errorf("stream: %+v", r)
	}
}

// A client that does not finish its body is answered and cut off, whether the
// body would have been read or not, and takes no room from others.
func TestHTTPSlowBody(t *testing.T) {
	t.Parallel()
	p, _ := recording()
	ts := serveBounded(t, newServer(t, p), mcpserver.HTTPOptions{Authenticate: byToken, MaxRequests: 1}, time.Second)
	var clients sync.WaitGroup
	for _, c := range []struct{ method, header, want string }{
		{"POST", "Authorization: Bearer alice-token", "408 Request Timeout"},
		{"POST", "Authorization: Bearer wrong", "401 Unauthorized"},
		{"POST", "Accept: */*", "401 Unauthorized"},
		{"POST", "Origin: https://evil.example", "403 Forbidden"},
		{"GET", "Authorization: Bearer alice-token", "405 Method Not Allowed"},
		{"DELETE", "Authorization: Bearer alice-token", "204 No Content"},
	} {
		clients.Go(func() {
			answer, err := unfinished(ts, c.method, c.header)
			if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 "+c.want) {
				t.Errorf("%s, %s: %q, %v", c.method, c.header, answer, err)
			}
		})
	}
	clients.Wait()
	res, _ := post(t, ts.URL, modern, request(modern, 8, "tools/list", ""), "Authorization", "Bearer alice-token")
	if res.StatusCode != http.StatusOK {
		t.Errorf("its room is not free: %d", res.StatusCode)
	}
}

// unfinished sends one byte of a body of 100, and returns all that comes back
// until the server closes the connection.
func unfinished(ts *httptest.Server, method, header string) (string, error) {
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\nContent-Length: 100\r\n\r\n{", method, header)
	b, err := io.ReadAll(conn)
	return string(b), err
}

// The time for a body and for a piece of an answer does not bound the call.
func TestHTTPCallOutlastsBound(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	s := newServer(t, slowPackage(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			t.Errorf("call is cancelled: %v", context.Cause(ctx))
		case <-time.After(limit + limit/4):
		}
	}))
	ts := serveBounded(t, s, mcpserver.HTTPOptions{}, limit)
	var wg sync.WaitGroup
	for _, version := range versions {
		r := newPost(t, ts.URL, version, request(version, 1, "tools/call", `{"name":"slow"}`))
		wg.Go(func() {
			res, rs, err := fetch(r)
			if err != nil || res.StatusCode != http.StatusOK || len(rs) != 1 || !strings.Contains(string(rs[0].Result), "slow done") {
				t.Errorf("%s: %+v, %v", version, rs, err)
			}
		})
	}
	wg.Wait()
}
