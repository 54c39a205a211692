package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/httpio"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// Bounds of what a client of HTTP may take of the daemon without calling.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	headerBytes   = 64 << 10
	// connectionsPerRequest is how many connections are held for each request that
	// may be handled: most are idle.
	connectionsPerRequest = 4
	retryAfter            = "1" // seconds
	// ioTimeout is for the body of a request, and for each piece of an answer.
	ioTimeout = 30 * time.Second
	// lastAnswers is how long answers of drained calls may take to reach their
	// clients. Streams that wait for news never end by themselves.
	lastAnswers = 2 * time.Second
)

// errNoToken: the request carries no token of a principal.
var errNoToken = errors.New("no valid bearer token")

// listen begins to serve HTTP and the local socket. What it returns stops HTTP,
// with the answers that are still on their way sent first.
func (d *daemon) listen(work *errgroup.Group) (stop func(), err error) {
	if !d.HTTP {
		return func() {}, nil
	}
	var servers []*http.Server
	stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), lastAnswers)
		defer cancel()
		for _, s := range servers {
			if s.Shutdown(ctx) != nil {
				s.Close()
			}
		}
	}
	c := d.config.Listen
	addr, s, err := d.serveHTTP(work, c.HTTP, d.mux(c.Metrics == ""))
	if err != nil {
		return nil, err
	}
	servers = append(servers, s)
	var metricsAddr string
	if c.Metrics != "" {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", d.authenticated(d.metrics.Handler()))
		if metricsAddr, s, err = d.serveHTTP(work, c.Metrics, mux); err != nil {
			stop()
			return nil, err
		}
		servers = append(servers, s)
	}
	d.listenLocal(work)
	if d.Started != nil {
		d.Started(addr, metricsAddr)
	}
	return stop, nil
}

func (d *daemon) serveHTTP(work *errgroup.Group, addr string, h http.Handler) (string, *http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w; choose another address with --http, or listen: in the configuration", err)
	}
	bounded := netutil.LimitListener(l, connectionsPerRequest*d.inForce.Limits.Requests)
	s := &http.Server{
		Handler: httpio.Bound(ownName(h), ioTimeout), DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(d.Logger.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(d.server.CloseStreams)
	work.Go(func() error {
		if err := s.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("http: %w", err)
		}
		return nil
	})
	return l.Addr().String(), s, nil
}

// mux is everything that is served on the address of the MCP endpoint.
func (d *daemon) mux(withMetrics bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", d.whenReady(d.server.Handler(mcpserver.HTTPOptions{
		Authenticate: d.authenticate,
		MaxBody:      d.config.Limits.Body,
		MaxRequests:  d.config.Limits.Requests,
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", d.readyz)
	if withMetrics {
		mux.Handle("GET /metrics", d.authenticated(d.metrics.Handler()))
	}
	return mux
}

// whenReady answers 503 before the packages are ready and while the daemon
// drains: a client that waits is served by the next daemon, or another replica.
func (d *daemon) whenReady(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := state(d.state.Load()); s != ready {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, s.String(), http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// readyz says whether the daemon takes calls: its tools are listed, its state
// folder can be written and its store be read, and it does not drain. Packages may
// still be loading: their calls wait for that.
func (d *daemon) readyz(w http.ResponseWriter, r *http.Request) {
	s := state(d.state.Load())
	if s == ready {
		if err := d.host.Reachable(r.Context()); err != nil {
			d.Logger.Error("not ready", "error", err)
			http.Error(w, "state folder cannot be written, or the store not be read", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, s)
		return
	}
	http.Error(w, s.String(), http.StatusServiceUnavailable)
}

// String returns the state's name.
func (s state) String() string {
	switch s {
	case starting:
		return "starting"
	case ready:
		return "ready"
	case draining:
		return "draining"
	}
	return fmt.Sprintf("state(%d)", int32(s))
}

// authenticate returns whose request it is.
func (d *daemon) authenticate(r *http.Request) (string, error) {
	principals := *d.auth.Load()
	if len(principals) == 0 {
		return runtime.LocalPrincipal, nil
	}
	name, ok := config.Authenticate(principals, r.Header.Get("Authorization"))
	if !ok {
		d.metrics.Unauthorized()
		return "", errNoToken
	}
	return name, nil
}

// authenticated lets only principals in, where there are any.
func (d *daemon) authenticated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := d.authenticate(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ownName refuses requests that reach a loopback address under another name: a
// web site whose name was rebound to this machine.
func ownName(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if ok && loopback(addr.String()) && !loopback(r.Host) {
			http.Error(w, "the host in the request is not this machine's loopback name", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return config.Loopback(strings.Trim(host, "[]"))
}
