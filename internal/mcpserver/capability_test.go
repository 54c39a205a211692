package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// demanding returns a package whose tool "a" requires the capabilities of a
// client. It refuses as the engine does.
func demanding(required ...string) (*fakePackage, chan runtime.Request) {
	p, seen := recording()
	p.tools[0].Definition.ClientCapabilities = required
	ok := p.call
	p.call = func(ctx context.Context, r runtime.Request) *runtime.Result {
		missing := slices.DeleteFunc(slices.Clone(required), func(name string) bool { return slices.Contains(r.ClientCapabilities, name) })
		if len(missing) == 0 {
			return ok(ctx, r)
		}
		res := &runtime.Result{CallID: "c", Outcome: runtime.Refused, Err: &runtime.CapabilityError{Missing: missing}}
		res.Output = runtime.Explain(r.Tool, res)
		return res
	}
	return p, seen
}

// clientOf returns a client that declares the capabilities and nothing else.
func clientOf(declared []string) *mcp.Client {
	c := &mcp.ClientCapabilities{}
	for _, name := range declared {
		switch name {
		case tool.ClientElicitation:
			c.Elicitation = &mcp.ElicitationCapabilities{}
		case tool.ClientRoots:
			//lint:ignore SA1019 deprecated by 2026-07-28, and declared by clients of both eras
			c.RootsV2 = &mcp.RootCapabilities{}
		case tool.ClientSampling:
			//lint:ignore SA1019 as above
			c.Sampling = &mcp.SamplingCapabilities{}
		}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{Capabilities: c})
}

// The engine hears what the client declared, in both eras, over streams and over
// HTTP, where a client of 2025-11-25 said it in a request that is forgotten.
func TestDeclaredCapabilities(t *testing.T) {
	for _, version := range versions {
		for _, overHTTP := range []bool{false, true} {
			for _, declared := range [][]string{nil, {"elicitation"}, {"roots"}, {"sampling"}, {"elicitation", "roots", "sampling"}} {
				name := fmt.Sprintf("%s, HTTP %t, %v", version, overHTTP, declared)
				p, seen := demanding("roots", "sampling")
				s := newServer(t, p)
				session, err := clientOf(declared).Connect(t.Context(), transportTo(t, s, overHTTP), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
				rpc, refused := errors.AsType[*jsonrpc.Error](err)
				switch {
				case len(declared) == 3:
					if err != nil || !slices.Equal((<-seen).ClientCapabilities, declared) {
						t.Errorf("%s: %v", name, err)
					}
				case !refused || rpc.Code != mcp.CodeMissingRequiredClientCapabilities || len(seen) > 0:
					t.Errorf("%s: %v, %d calls ran", name, err, len(seen))
				}
				if err := session.Close(); err != nil {
					t.Errorf("%s: close: %v", name, err)
				}
			}
		}
	}
}

// transportTo returns a client's way to a server.
func transportTo(t *testing.T, s *mcpserver.Server, overHTTP bool) mcp.Transport {
	t.Helper()
	if overHTTP {
		return &mcp.StreamableClientTransport{Endpoint: serveHTTP(t, s, mcpserver.HTTPOptions{}).URL}
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.WithoutCancel(t.Context()), in, out) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return &mcp.IOTransport{Reader: fromServer, Writer: toServer}
}

// The error names what is missing, and nothing else, as an object of objects; its
// status over HTTP is 400 by 2026-07-28.
func TestMissingCapabilityOnTheWire(t *testing.T) {
	p, seen := demanding("roots", "sampling")
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	sampling := strings.Repeat("A", 26) + "S"
	for name, c := range map[string]struct {
		version, meta, session string
		status                 int
		data                   string // empty: the tool runs
	}{
		"nothing declared":              {modern, `{}`, "", http.StatusBadRequest, `{"requiredCapabilities":{"roots":{},"sampling":{}}}`},
		"one declared":                  {modern, `{"sampling":{}}`, "", http.StatusBadRequest, `{"requiredCapabilities":{"roots":{}}}`},
		"null is not declared":          {modern, `{"sampling":null,"roots":{}}`, "", http.StatusBadRequest, `{"requiredCapabilities":{"sampling":{}}}`},
		"both declared":                 {modern, `{"sampling":{},"roots":{}}`, "", http.StatusOK, ""},
		"sessions are of before":        {modern, `{"roots":{}}`, sampling, http.StatusBadRequest, `{"requiredCapabilities":{"sampling":{}}}`},
		"before, no session":            {legacy, "", "", http.StatusOK, `{"requiredCapabilities":{"roots":{},"sampling":{}}}`},
		"before, one declared":          {legacy, "", sampling, http.StatusOK, `{"requiredCapabilities":{"roots":{}}}`},
		"before, session of other form": {legacy, "", "S", http.StatusOK, `{"requiredCapabilities":{"roots":{},"sampling":{}}}`},
		"before, both declared":         {legacy, "", sampling + "R", http.StatusOK, ""},
	} {
		body := request(c.version, 7, "tools/call", `{"name":"a"}`)
		if c.version == modern {
			body = strings.Replace(body, `clientCapabilities":{}`, `clientCapabilities":`+c.meta, 1)
		}
		res, rs := post(t, ts.URL, c.version, body, "Mcp-Session-Id", c.session)
		if res.StatusCode != c.status || len(rs) != 1 {
			t.Errorf("%s: %d, %+v", name, res.StatusCode, rs)
			continue
		}
		if c.data == "" {
			if rs[0].Error != nil || len(seen) != 1 {
				t.Errorf("%s: %+v, %d calls ran", name, rs[0].Error, len(seen))
				continue
			}
			<-seen
			continue
		}
		if e := rs[0].Error; e == nil || e.Code != -32021 || string(e.Data) != c.data || string(rs[0].ID) != "7" || len(seen) != 0 {
			t.Errorf("%s: %+v, %d calls ran", name, e, len(seen))
		} else if !strings.HasPrefix(e.Message, "a was not called: it requires a client that declares ") {
			t.Errorf("%s: told %q", name, e.Message)
		}
	}
}

// What is required is listed and part of the policy's digest; a tool that
// requires nothing is listed as ever.
func TestRequirementIsListed(t *testing.T) {
	listed := func(required ...string) map[string]any {
		p, _ := recording()
		p.tools[0] = newTool("a", capabilities.Claim{})
		p.tools[0].Definition.ClientCapabilities = required
		session, err := clientOf(nil).Connect(t.Context(), transportTo(t, newServer(t, p), false), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		l, err := session.ListTools(t.Context(), nil)
		if err != nil || len(l.Tools) != 1 {
			t.Fatalf("%+v, %v", l, err)
		}
		m, ok := l.Tools[0].Meta[runtime.MetaPrefix+"enforcement"].(map[string]any)
		if !ok {
			t.Fatalf("_meta: %v", l.Tools[0].Meta)
		}
		return m
	}
	free, bound := listed(), listed("sampling")
	if _, ok := free["clientCapabilities"]; ok || fmt.Sprint(bound["clientCapabilities"]) != "[sampling]" || free["policyDigest"] == bound["policyDigest"] {
		t.Errorf("%v\n%v", free, bound)
	}
}
