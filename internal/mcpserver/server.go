package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Causes of the end of a call's context; both match context.Canceled.
var (
	// ErrCancelled: the client cancelled the request (notifications/cancelled over
	// HTTP).
	ErrCancelled = fmt.Errorf("client cancelled the request: %w", context.Canceled)
	// ErrStopped: the server stops.
	ErrStopped = fmt.Errorf("server is %w: %w", runtime.ErrClosed, context.Canceled)
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
	Packages []Package // none: an empty list of tools
	// HostTools are the host's own tools that are served besides, [ToolPreview] and
	// so on; default: none. All but the first need Host.
	HostTools []string
	Host      Host
	Version   string       // what clients are told; empty: "devel"
	Logger    *slog.Logger // nil: nothing is logged
}

// Server answers MCP clients. Its list of tools is the same for every client.
// It is safe for concurrent use.
type Server struct {
	mcp     *mcp.Server
	log     *slog.Logger
	host    Host // nil: none
	tools   toolSet
	flights flights
	// stopGrace is how long a client of a stream may take what is left for it when
	// the server stops.
	stopGrace time.Duration

	mu      sync.Mutex
	cancels map[*context.CancelCauseFunc]struct{} // of the calls that run
	streams map[*context.CancelFunc]struct{}      // of the subscriptions over HTTP; nil once they are closed
}

// New returns a server of the packages' tools. It refuses tools that MCP has no
// room for, and two tools of one name ([*CollisionError]): a package that the
// operator gave another name gets that name as a prefix then.
func New(o Options) (*Server, error) {
	if o.Version == "" {
		o.Version = "devel"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		log:       o.Logger,
		host:      o.Host,
		stopGrace: 5 * time.Second,
		cancels:   map[*context.CancelCauseFunc]struct{}{},
		streams:   map[*context.CancelFunc]struct{}{},
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "sandboxd", Version: o.Version}, &mcp.ServerOptions{
		Capabilities:      serverCapabilities(),
		CompletionHandler: complete,
		Logger:            s.mcpLog(),
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			// The SDK's default, "public", would let a proxy hand one user's list to another.
			c.TTLMs, c.CacheScope = 0, "private"
		},
	})
	s.mcp.AddReceivingMiddleware(s.tools.receiving)
	s.mcp.AddSendingMiddleware(s.tools.sending)
	if err := s.Replace(o.Packages, o.HostTools...); err != nil {
		return nil, err
	}
	return s, nil
}

// serverCapabilities returns what clients are told that the server can do.
//
// Prompts, resources and completions are declared though there are none: the SDK
// answers their list methods with empty lists whatever is declared, and an answer
// to an undeclared method breaks the protocol (2026-07-28, SEP-2575), as the
// conformance suite checks.
func serverCapabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{ListChanged: true},
		//lint:ignore SA1019 deprecated by 2026-07-28; to be declared by who logs to clients of before
		Logging:     &mcp.LoggingCapabilities{},
		Prompts:     &mcp.PromptCapabilities{},
		Resources:   &mcp.ResourceCapabilities{},
		Completions: &mcp.CompletionCapabilities{},
	}
	c.AddExtension(metaEnforcement, map[string]any{"modes": []string{capabilities.Enforce.String(), capabilities.Report.String()}})
	return c
}

// complete answers completion/complete: there is nothing to complete.
func complete(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown prompt or resource template"}
}

// ServeStdio answers one client over a pair of streams until the client closes
// its side and every request that it sent is answered, or ctx ends; either is
// a clean end. Calls that run when ctx ends are stopped, and their answers sent
// if the client takes them within 5 s.
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
		go func() { _ = session.Close() }() // waits for answers to be taken
		select {
		case err = <-done:
		case <-time.After(s.stopGrace):
			s.log.Debug("client does not take its answers; they are lost")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("stdio: %w", err)
	}
	return nil
}

// track gives a call a context of its own that cancelAll ends, and the end of
// the flight if it is not nil; release it with the returned function.
func (s *Server) track(ctx context.Context, f *flight) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := &cancel
	s.mu.Lock()
	s.cancels[key] = struct{}{}
	s.mu.Unlock()
	unlink := func() bool { return true }
	if f != nil {
		unlink = context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })
	}
	return ctx, func() {
		unlink()
		s.mu.Lock()
		delete(s.cancels, key)
		s.mu.Unlock()
		cancel(nil)
	}
}

// cancelAll ends the calls that run. The SDK does not hand the end of a
// stream's context on to its handlers.
func (s *Server) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.cancels {
		(*c)(ErrStopped)
	}
}

// keepOpen is a writer whose Close leaves the stream open for its owner.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// mcpLog is where the SDK logs.
func (s *Server) mcpLog() *slog.Logger { return slog.New(quiet{s.log.Handler()}) }

// quiet writes at the level debug what the SDK logs above it. A client can cause
// each of those lines, errors too, as often as it likes; whom they concern is
// answered. What is a fault of ours is logged by us.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, min(l, slog.LevelDebug))
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }
func (q quiet) WithGroup(name string) slog.Handler    { return quiet{q.Handler.WithGroup(name)} }
