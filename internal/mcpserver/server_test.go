package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

var versions = []string{"2025-11-25", "2026-07-28"}

func connect(t *testing.T, s *mcpserver.Server, version string) *mcpserver.Client {
	t.Helper()
	c, err := s.Connect(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// One result that many calls share, and its maps, stay as they are: run with -race.
func TestConcurrentCallsShareNothing(t *testing.T) {
	shared := results()["ok_forged"]
	p := &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{newTool("a", capabilities.Claim{})}}
	p.call = func(context.Context, runtime.Request) *runtime.Result { return shared }
	s := newServer(t, p)
	var wg sync.WaitGroup
	for _, v := range versions {
		c := connect(t, s, v)
		for range 16 {
			wg.Go(func() {
				r, err := c.Call(t.Context(), "a", json.RawMessage(`{"n":1}`))
				if err != nil || r.Text != "x" || r.CallID != shared.CallID {
					t.Errorf("call under %s: %+v, %v", v, r, err)
				}
			})
		}
	}
	wg.Wait()
	if len(shared.Output.Meta) != 2 {
		t.Errorf("shared result was written to: %v", shared.Output.Meta)
	}
}

// A handler that panics or returns nothing costs the client an error, not the
// server its life.
func TestHandlerFaults(t *testing.T) {
	for _, v := range versions {
		c := connect(t, newServer(t, newOutcomes()), v)
		for _, name := range []string{"panics", "nil_result", "host_error"} {
			_, err := c.Call(t.Context(), name, nil)
			var rpc *jsonrpc.Error
			if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternalError {
				t.Errorf("%s under %s: %v, want code %d", name, v, err, jsonrpc.CodeInternalError)
			}
			if err != nil && strings.Contains(err.Error(), errHost.Error()) {
				t.Errorf("%s under %s: the host's error reaches the client: %v", name, v, err)
			}
		}
		if r, err := c.Call(t.Context(), "ok", nil); err != nil || r.Text != "done" || !r.Committed {
			t.Errorf("call after the faults under %s: %+v, %v", v, r, err)
		}
	}
}

// Of a stopped call the client gets what the engine says about it, and neither
// the guest's log nor the host's error.
func TestStoppedCallsWithholdOutput(t *testing.T) {
	c := connect(t, newServer(t, newOutcomes()), "")
	for _, name := range []string{"violation", "timeout", "limit", "conflict"} {
		r, err := c.Call(t.Context(), name, nil)
		if err != nil || !r.IsError || r.Committed || strings.Contains(r.Text, guestSecret) || strings.Contains(r.Text, errHost.Error()) || r.Text == "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if (name == "violation") != (r.Violation != nil) {
			t.Errorf("%s: violation in _meta: %+v", name, r.Violation)
		}
	}
}

func TestNames(t *testing.T) {
	pkg := func(name, own string, tools ...string) *fakePackage {
		p := &fakePackage{name: name, own: own}
		for _, n := range tools {
			p.tools = append(p.tools, newTool(n, capabilities.Claim{}))
		}
		p.call = func(_ context.Context, r runtime.Request) *runtime.Result {
			return &runtime.Result{Outcome: runtime.OK, Output: textOutput(name + " ran " + r.Tool)}
		}
		return p
	}
	for name, ps := range map[string][]mcpserver.Package{
		"two packages": {pkg("a", "a", "x"), pkg("b", "b", "x")},
		"one name":     {pkg("a", "notes", "x"), pkg("a", "notes", "x")},
	} {
		_, err := mcpserver.New(mcpserver.Options{Packages: ps})
		if err == nil || !strings.Contains(err.Error(), "rename one in its tool.yaml") || !strings.Contains(err.Error(), "x") {
			t.Errorf("%s: %v, want an error that names tool and mend", name, err)
		}
	}
	s := newServer(t, pkg("a", "notes", "x", "y"), pkg("notes", "notes", "x"))
	c := connect(t, s, "")
	for name, want := range map[string]string{"a_x": "a ran x", "y": "a ran y", "x": "notes ran x"} {
		if r, err := c.Call(t.Context(), name, nil); err != nil || r.Text != want {
			t.Errorf("%s: %+v, %v, want %q", name, r, err, want)
		}
	}
	if _, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{pkg("a", "a", "bad name")}}); err == nil {
		t.Error("a name with a space: no error")
	}
}

// The SDK panics on these; here they are errors that name package and tool.
func TestBadDefinitions(t *testing.T) {
	for _, schema := range []string{
		`{"type":"array"}`, `[]`, `{`, `null`,
		`{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
	} {
		bad := newTool("bad", capabilities.Claim{})
		bad.Definition.InputSchema = json.RawMessage(schema)
		p := &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{bad}}
		_, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{p}})
		if err == nil || !strings.Contains(err.Error(), "package p: tool bad") {
			t.Errorf("schema %s: %v", schema, err)
		}
	}
}

const (
	initLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	callLine = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}` + "\n"
)

func slowPackage(call func(context.Context)) *fakePackage {
	p := &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{newTool("slow", capabilities.Claim{})}}
	p.call = func(ctx context.Context, _ runtime.Request) *runtime.Result {
		call(ctx)
		return &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: textOutput("slow done")}
	}
	return p
}

// A client that writes its requests and closes its side gets all answers.
func TestStdioDrains(t *testing.T) {
	s := newServer(t, slowPackage(func(ctx context.Context) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Error("the end of the input cancelled the call")
		}
	}))
	var out bytes.Buffer
	if err := s.ServeStdio(t.Context(), strings.NewReader(initLine+callLine), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "slow done") {
		t.Errorf("answers: %s", out.String())
	}
}

// The end of ctx stops what runs and is a clean end.
func TestStdioStops(t *testing.T) {
	started := make(chan struct{})
	s := newServer(t, slowPackage(func(ctx context.Context) {
		close(started)
		<-ctx.Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	defer client.Close()
	go func() {
		_, _ = io.WriteString(client, initLine+callLine)
		<-started
		cancel()
	}()
	if err := s.ServeStdio(ctx, in, io.Discard); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A subscription, which is answered only when it ends, does not keep the server
// from ending with its input.
func TestStdioEndsSubscriptions(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	in := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ok",` + meta + `}}` + "\n"
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := newServer(t, newOutcomes()).ServeStdio(ctx, strings.NewReader(in), &out); err != nil || ctx.Err() != nil {
		t.Errorf("serve: %v, %v", err, ctx.Err())
	}
	if !strings.Contains(out.String(), "done") {
		t.Errorf("answers: %s", out.String())
	}
}

// A line that is not JSON-RPC ends the connection with an error, not the process.
func TestStdioBadInput(t *testing.T) {
	s := newServer(t, newOutcomes())
	if err := s.ServeStdio(t.Context(), strings.NewReader("hello\n"), io.Discard); err == nil {
		t.Error("no error")
	}
}
