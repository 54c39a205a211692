package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"

	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Package is what the server needs of a loaded package; [*runtime.Package] is
// one.
type Package interface {
	Call(ctx context.Context, r runtime.Request) *runtime.Result
	Name() string
	Source() *tool.Package
	Tools() []*runtime.Tool
}

// Packages returns loaded packages as the server takes them.
func Packages(ps ...*runtime.Package) []Package {
	out := make([]Package, len(ps))
	for i, p := range ps {
		out[i] = p
	}
	return out
}

// Options of a [Server].
type Options struct {
	Packages []Package    // none: an empty list of tools
	Version  string       // what clients are told; empty: "devel"
	Logger   *slog.Logger // nil: nothing is logged
}

// Server answers MCP clients. Its list of tools is the same for every client
// and does not change. It is safe for concurrent use.
type Server struct {
	mcp *mcp.Server
	log *slog.Logger

	mu      sync.Mutex
	cancels map[*context.CancelFunc]struct{} // of the calls that run
}

// New returns a server of the packages' tools. It refuses tools that MCP has no
// room for, and two tools of one name: a package that the operator gave another
// name gets that name as a prefix then, other collisions are errors.
func New(o Options) (*Server, error) {
	if o.Version == "" {
		o.Version = "devel"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{log: o.Logger, cancels: map[*context.CancelFunc]struct{}{}}
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	caps.AddExtension(metaEnforcement, map[string]any{"modes": []string{capabilities.Enforce.String(), capabilities.Report.String()}})
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "sandboxd", Version: o.Version}, &mcp.ServerOptions{
		Capabilities: caps,
		Logger:       o.Logger,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			// The SDK's default, "public", would let a proxy hand one user's list to another.
			c.TTLMs, c.CacheScope = 0, "private"
		},
	})
	es, err := entries(o.Packages)
	if err != nil {
		return nil, err
	}
	for _, e := range es {
		if err := s.add(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add registers one tool. The SDK panics on definitions that it cannot serve;
// they come from packages, so they are errors here.
func (s *Server) add(e *entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("package %s: tool %s: %v", e.pkg.Name(), e.tool.Definition.Name, p)
		}
	}()
	t, err := e.listing()
	if err != nil {
		return fmt.Errorf("package %s: tool %s: %w", e.pkg.Name(), e.tool.Definition.Name, err)
	}
	s.mcp.AddTool(t, s.handler(e))
	return nil
}

// ServeStdio answers one client over a pair of streams until the client closes
// its side and every request that it sent is answered, or ctx ends; either is
// a clean end. Calls that run when ctx ends are stopped.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	t := &draining{inner: &mcp.IOTransport{Reader: io.NopCloser(in), Writer: keepOpen{out}}}
	session, err := s.mcp.Connect(ctx, t, nil)
	if err != nil {
		return fmt.Errorf("stdio: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		s.cancelAll()
		err = session.Close()
		<-done
	}
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("stdio: %w", err)
	}
	return nil
}

// track gives a call a context of its own that cancelAll ends; release it with
// the returned function.
func (s *Server) track(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	key := &cancel
	s.mu.Lock()
	s.cancels[key] = struct{}{}
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.cancels, key)
		s.mu.Unlock()
		cancel()
	}
}

// cancelAll ends the calls that run. The SDK does not hand the end of a
// stream's context on to its handlers.
func (s *Server) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.cancels {
		(*c)()
	}
}

// keepOpen is a writer whose Close leaves the stream open for its owner.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
