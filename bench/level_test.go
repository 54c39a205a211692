package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// cell is one thing to measure: a call of one kind of tool at one level. do
// returns the text of the answer.
type cell struct {
	level, kind, tool string
	do                func(context.Context) (string, error)
	answer            string
}

func (c *cell) String() string { return c.level + "/" + c.kind + "/" + c.tool }

// run makes one call and checks its answer.
func (c *cell) run(ctx context.Context) error {
	got, err := c.do(ctx)
	if err == nil && got != c.answer {
		return fmt.Errorf("%s: answer %q", c, got)
	}
	return err
}

// cells returns everything that is compared.
func cells(tb testing.TB) []*cell {
	tb.Helper()
	kinds := []struct {
		name string
		pkg  mcpserver.Package
	}{{"native", newNative(folder(tb))}, {"minimal", minimal(tb)}, {"guest", guest(tb)}}
	var out []*cell
	for _, k := range kinds {
		server, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{k.pkg}, Version: "bench"})
		if err != nil {
			tb.Fatal(err)
		}
		memory, overHTTP := inMemory(tb, server), overHTTP(tb, server)
		for _, r := range requests {
			if k.name == "minimal" && r.tool != "echo" {
				continue
			}
			out = append(out,
				&cell{"engine", k.name, r.name, direct(k.pkg, r), r.answer},
				&cell{"in-memory MCP", k.name, r.name, called(memory, r), r.answer},
				&cell{"HTTP", k.name, r.name, called(overHTTP, r), r.answer})
		}
	}
	return out
}

func direct(p mcpserver.Package, r request) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		res := p.Call(ctx, runtime.Request{Tool: r.tool, Arguments: r.arguments})
		if res.Outcome != runtime.OK {
			return "", fmt.Errorf("outcome %s: %w", res.Outcome, res.Err)
		}
		var c struct{ Text string }
		err := json.Unmarshal(res.Output.Content[0], &c)
		return c.Text, err
	}
}

func called(s *mcp.ClientSession, r request) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: r.tool, Arguments: r.arguments})
		if err != nil {
			return "", err
		}
		text, ok := res.Content[0].(*mcp.TextContent)
		if !ok || res.IsError {
			return "", fmt.Errorf("answer %v", res.Content)
		}
		return text.Text, nil
	}
}

func inMemory(tb testing.TB, server *mcpserver.Server) *mcp.ClientSession {
	tb.Helper()
	client, far := newPipes()
	done := make(chan error, 1)
	go func() { done <- server.ServeStdio(context.Background(), far.in, far.out) }()
	s := connect(tb, &mcp.IOTransport{Reader: client.in, Writer: client.out})
	tb.Cleanup(func() { s.Close(); <-done })
	return s
}

func overHTTP(tb testing.TB, server *mcpserver.Server) *mcp.ClientSession {
	tb.Helper()
	h := httptest.NewServer(server.Handler(mcpserver.HTTPOptions{Authenticate: mcpserver.Everybody}))
	tb.Cleanup(h.Close)
	s := connect(tb, &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}})
	tb.Cleanup(func() { s.Close() })
	return s
}

func connect(tb testing.TB, transport mcp.Transport) *mcp.ClientSession {
	tb.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(tb.Context(), transport, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Benchmark measures each cell by itself. The report compares them in one run.
func Benchmark(b *testing.B) {
	for _, c := range cells(b) {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
