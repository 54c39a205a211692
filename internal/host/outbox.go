package host

import (
	"context"
	"maps"
	"sync"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/runtime"
)

// routes says where messages go, by the packages that are served. The zero value
// has none.
type routes struct {
	mu    sync.Mutex
	sinks map[string]map[string]config.Sink // by package and host
	files map[string]*courier.FileSink      // by path: packages may share one
}

// sink returns who takes the messages of a package for a host, and whether the
// package is served here.
func (r *routes) sink(pkg, host string) (courier.Sink, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sinks, served := r.sinks[pkg]
	s, ok := sinks[host]
	if !ok {
		return nil, served
	}
	f := r.files[s.File]
	if f == nil {
		if r.files == nil {
			r.files = map[string]*courier.FileSink{}
		}
		f = courier.NewFileSink(s.File)
		r.files[s.File] = f
	}
	return f, true
}

func (r *routes) set(pkg string, sinks map[string]config.Sink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sinks == nil {
		r.sinks = map[string]map[string]config.Sink{}
	}
	r.sinks[pkg] = maps.Clone(sinks)
}

func (r *routes) remove(pkg string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sinks, pkg)
}

// Route says where the messages of a package that is served go, by their hosts.
// Those for others stay in the outbox.
func (h *Host) Route(pkg string, sinks map[string]config.Sink) {
	h.routes.set(pkg, sinks)
	h.post.Wake()
}

// Unroute leaves the messages of a package to other processes.
func (h *Host) Unroute(pkg string) { h.routes.remove(pkg) }

// Deliver delivers what is due, each message once, until ctx ends.
func (h *Host) Deliver(ctx context.Context) error { return h.post.Drain(ctx) }

// sent looks for what a call committed.
func (h *Host) sent(runtime.CallInfo, runtime.SendKind) { h.post.Wake() }

// posting returns how messages are delivered.
func (h *Host) posting(o Options) courier.Options {
	return courier.Options{
		Store: h.store, Sink: h.routes.sink, Backlog: o.Backlog,
		Record: audit.OutboxRecord,
		Observe: func(e courier.Event) {
			h.tellMessage(e)
			if o.Message != nil {
				o.Message(e)
			}
		},
		Fault: func(err error) { h.logger.Error("outbox", "error", err) },
	}
}

// tellMessage logs what became of a message. Its path and body are not said: they
// may hold secrets.
func (h *Host) tellMessage(e courier.Event) {
	l := h.logger.With("package", e.Space.Package, "host", e.Host, "key", e.Key, "call", e.CallID, "attempts", e.Attempts)
	switch e.Kind {
	case courier.Delivered:
		l.Debug("message is delivered")
	case courier.Failed:
		l.Warn("message is not delivered yet", "error", e.Error, "next", e.Next)
	case courier.GivenUp:
		l.Error("message is given up", "error", e.Error)
	case courier.NoSink:
		h.logger.Warn("messages wait: nobody delivers them; name a file for the host under outbox: of the package in the configuration",
			"package", e.Space.Package, "host", e.Host)
	}
}
