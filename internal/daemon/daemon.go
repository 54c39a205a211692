// Package daemon serves packages until it is told to stop: over Streamable
// HTTP, over standard input and output, and over the local socket to processes
// of the same state folder. It takes a changed configuration without a restart,
// whole or not at all.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/internal/metrics"
	"github.com/sandboxd/sandboxd/internal/trace"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Options of [Run].
type Options struct {
	// Config reads the configuration, for the start and for each reload.
	Config func() (*config.Config, error)
	// Sources reads the packages of a configuration, in its order, and may change
	// what they are given. An error is of the configuration as a whole.
	Sources func(*config.Config) ([]Source, error)
	// Source reads the package at a path, built first where it has a source: for
	// processes that attach.
	Source       func(path string) (*tool.Package, error)
	State, Cache string
	Watch        []string         // files whose change is a reload, besides those of the packages; default: none
	Reload       <-chan os.Signal // each value is a reload; nil: none is asked for
	Retry        time.Duration    // how often packages that are not served are tried again; default: 30 s
	TrustChanges bool             // accept packages that changed since they were approved
	HTTP         bool             // listen as the configuration says, and on the local socket
	Stdio        *Stdio
	Observer     runtime.Observer // told last
	Logger       *slog.Logger     // nil: nothing is logged
	Version      string
	Commit       string
	// Started is called with the addresses that HTTP is served on, before the
	// packages are ready; metrics is empty where it has no address of its own.
	Started func(http, metrics string)
}

// Source is a package as it was read, or why it could not be.
type Source struct {
	Package *tool.Package
	Err     error
}

// Stdio is one client over a pair of streams. The daemon ends with it.
type Stdio struct {
	In  io.Reader
	Out io.Writer
}

// state is where a daemon is in its life.
type state int32

const (
	starting state = iota
	ready
	draining
)

// daemon is a running daemon.
type daemon struct {
	Options

	told    context.Context // ends when the daemon is told to stop
	life    context.Context // ends when it has drained
	started chan struct{}   // closed when the packages are listed
	broke   chan struct{}   // has a value when a package that is listed did not load
	host    *host.Host
	metrics *metrics.Metrics
	tracer  *trace.Tracer // nil: no traces
	server  *mcpserver.Server
	pool    *pool
	state   atomic.Int32
	grace   atomic.Int64             // nanoseconds
	absent  atomic.Int32             // packages of the configuration that are not served
	loads   atomic.Int32             // packages that are listed and not loaded yet
	folders atomic.Pointer[[]string] // of packages, that are watched
	files   atomic.Pointer[[]string] // folders of their own files, likewise
	asked   atomic.Bool              // a reload that is to come was asked for
	auth    atomic.Pointer[[]config.Principal]

	inForce *config.Config // what the daemon was started with: some of it stays

	reloading sync.Mutex // held while what is below changes
	config    *config.Config
	serving   []*entry
	attaches  map[*attachment]struct{}
	refused   bool           // the last try to reload was
	closing   sync.WaitGroup // packages that are let go of
}

// ErrNothingServed: no package that was named could be loaded.
var ErrNothingServed = errors.New("no package could be loaded")

// nothingServed says of each package why.
type nothingServed struct{ why []error }

// Error returns the reasons on one line.
func (e *nothingServed) Error() string {
	var b strings.Builder
	for i, err := range e.why {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// Unwrap returns [ErrNothingServed] and the reasons.
func (e *nothingServed) Unwrap() []error { return append([]error{ErrNothingServed}, e.why...) }

// Run serves until ctx ends or, where there is one, the client on stdio is
// done; either is a clean end. Calls that run then have as long as the
// configuration grants them.
func Run(ctx context.Context, o Options) (err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Retry == 0 {
		o.Retry = 30 * time.Second // what they lack, a folder for example, may be there by then
	}
	c, err := o.Config()
	if err != nil {
		return err
	}
	sources, err := o.Sources(c)
	if err != nil {
		return err
	}
	told, stop := context.WithCancel(ctx)
	defer stop()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	d := &daemon{
		Options: o, told: told, life: life, started: make(chan struct{}), config: c, inForce: c,
		broke: make(chan struct{}, 1), attaches: map[*attachment]struct{}{},
		metrics: metrics.New(metrics.Options{Version: o.Version, Commit: o.Commit}),
	}
	d.auth.Store(&c.Principals)
	d.grace.Store(int64(c.Grace))
	if err := d.open(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return d.run(sources, stop, end)
}

// stopTime is how long calls that are stopped have to end.
const stopTime = 10 * time.Second

// run serves until the daemon is told to stop, and drains.
func (d *daemon) run(sources []Source, stop, end func()) (err error) {
	work, broken := errgroup.WithContext(d.life)
	defer func() {
		end()
		err = errors.Join(err, work.Wait())
	}()
	stopListening, err := d.listen(work)
	if err != nil {
		return err
	}
	defer stopListening()
	if err := d.start(sources); err != nil || d.told.Err() != nil {
		return err
	}
	work.Go(func() error { d.watch(); return nil })
	work.Go(func() error { d.mend(); return nil })
	if d.Stdio != nil {
		work.Go(func() error {
			defer stop()
			return d.server.ServeStdio(d.life, d.Stdio.In, d.Stdio.Out)
		})
	}
	select {
	case <-d.told.Done():
	case <-broken.Done():
	}
	d.drain()
	return nil
}

// open makes what every call needs.
func (d *daemon) open(c *config.Config) (err error) {
	observer := runtime.Tee(d.metrics.Observer(), audit.LogTo(d.Logger), d.Observer)
	if c.Traces.Endpoint != "" {
		d.tracer, err = trace.New(d.life, trace.Options{
			Endpoint: c.Traces.Endpoint, Version: d.Version, Sample: c.Traces.Sample,
			OnError: func(err error) { d.Logger.Warn("traces", "error", err) },
		})
		if err != nil {
			return err
		}
		observer = runtime.Tee(observer, d.tracer.Observer())
	}
	d.host, err = host.Open(d.life, host.Options{
		State: d.State, Cache: d.Cache, Config: c, Observer: observer, Logger: d.Logger,
		Message: d.message,
		Backlog: func(b courier.Backlog) { d.metrics.Outbox(b.Messages, b.Since) },
	})
	if err != nil {
		return errors.Join(err, d.closeTracer())
	}
	d.metrics.RecordsLost(func() float64 { return float64(d.host.Log().Lost()) })
	d.pool = newPool(d.load)
	d.server, err = mcpserver.New(mcpserver.Options{Version: d.Version, Host: d.host, Logger: d.Logger})
	if err != nil {
		return errors.Join(err, d.close())
	}
	return nil
}

// message counts a try to deliver a message.
func (d *daemon) message(e courier.Event) {
	if e.Kind != courier.NoSink {
		d.metrics.Delivery(string(e.Kind))
	}
}

// start loads the packages for the first time. One that does not load keeps no
// other from being served.
func (d *daemon) start(sources []Source) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	plan := d.plan(d.config, sources, nil, loading{trustChanges: d.TrustChanges, later: true})
	if d.told.Err() != nil { // before anything could be served
		d.drop(plan.fresh)
		return nil
	}
	if len(plan.entries) == 0 && len(plan.failed) > 0 {
		return &nothingServed{plan.errors()}
	}
	for _, f := range plan.failed {
		d.Logger.Error("package is not served", "package", f.spec.Source, "error", f.err)
	}
	d.tellOpen(slog.LevelInfo)
	if err := d.apply(d.config, plan); err != nil {
		return err
	}
	d.host.Work(d.life)
	d.giveBack()
	d.state.Store(int32(ready))
	close(d.started)
	return nil
}

// drain lets the calls that run come to their end, and delivers the messages that
// are due, as long as the configuration grants them.
func (d *daemon) drain() {
	d.state.Store(int32(draining))
	grace := time.Duration(d.grace.Load())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), grace)
	defer cancel()
	if err := d.host.Drain(ctx); err != nil {
		d.Logger.Warn("calls are stopped: they run on after the grace period", "grace", grace)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), stopTime)
		defer cancel()
		if err := d.host.Stop(ctx); err != nil {
			d.Logger.Error("calls were stopped", "error", err)
		}
		return
	}
	if err := d.host.Deliver(ctx); err != nil {
		d.Logger.Warn("messages of the outbox wait for the next start", "error", err)
	}
}

// close ends what open made. What calls left to report is reported first.
func (d *daemon) close() error {
	d.closing.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), stopTime)
	defer cancel()
	err := d.host.Close(ctx)
	return errors.Join(err, d.closeTracer())
}

func (d *daemon) closeTracer() error {
	if d.tracer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), 5*time.Second)
	defer cancel()
	if err := d.tracer.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}
