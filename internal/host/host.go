// Package host is what every command that runs tools stands on: an engine, the
// audit log that it reports to, and the record of what was approved.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/postgres"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Options of a [Host].
type Options struct {
	State    string           // folder of the store, of approvals and of the audit log
	Cache    string           // folder of built and compiled modules; empty: none is kept
	Config   *config.Config   // its limits and its store; nil: the defaults
	Observer runtime.Observer // told after the audit log
	Logger   *slog.Logger     // nil: nothing is logged
	Strategy runtime.Strategy // default: that of the engine
	// Message is told what became of a message of the outbox, and Backlog how many
	// wait. Both are called by several goroutines; nil: nobody is told.
	Message func(courier.Event)
	Backlog func(courier.Backlog)
}

// Host runs packages that are approved. It is safe for concurrent use.
type Host struct {
	state  string
	engine *runtime.Engine
	store  store.Store
	log    *audit.Log
	trust  *trust.Store
	logger *slog.Logger
	routes routes
	post   *courier.Courier
	upkeep *upkeep
	work   work

	described described
	suspects  sync.Map // digests of packages whose recorded tools were listed and that did not load
}

// Compiled returns the folder of compiled modules in a cache folder; empty where
// there is no cache.
func Compiled(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "compiled")
}

// Open makes the state folder where it is missing and returns a host, which the
// caller closes.
func Open(ctx context.Context, o Options) (_ *Host, err error) {
	h := &Host{state: o.State, trust: trust.Open(o.State), logger: o.Logger, described: described{o.Cache}}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	c := o.Config
	if c == nil {
		c = config.Default()
	}
	if h.store, err = OpenStore(ctx, o.State, c); err != nil {
		return nil, err
	}
	h.warnOpen()
	h.log = audit.New(h.store, audit.Options{OnError: func(err error) { h.logger.Error("audit log", "error", err) }})
	h.upkeep = newUpkeep(h.store, c)
	h.post = courier.New(h.posting(o))
	h.engine, err = runtime.New(ctx, runtime.Options{
		Rewrite: Rewriting(c.WasmOpt, o.Cache),
		Store:   h.store, SharedStore: c.Store != "",
		Retention: runtime.Retention{Undo: c.Keep.Undo, Idempotency: c.Keep.IdempotencyKeys},
		Cache:     Compiled(o.Cache),
		Reserved:  slices.DeleteFunc([]string{o.Cache}, func(dir string) bool { return dir == "" }),
		State:     o.State,
		Strategy:  o.Strategy,
		Limits:    runtime.CallLimits{Calls: c.Limits.Calls, Waiting: c.Limits.Waiting, Memory: c.Limits.Memory},
		Observer:  runtime.Tee(h.log.Observer(), runtime.Observer{Abandoned: h.abandoned, Sent: h.sent}, o.Observer),
	})
	if err != nil {
		h.log.Close()
		return nil, errors.Join(err, h.store.Close())
	}
	return h, nil
}

// OpenStore opens what keeps the effects of calls, as the configuration says.
func OpenStore(ctx context.Context, state string, c *config.Config) (store.Store, error) {
	if c.Store != "" {
		return postgres.Open(ctx, postgres.Options{URL: c.Store})
	}
	return sqlite.Open(ctx, sqlite.Options{Folder: state})
}

// abandoned says that a killed process left files of a volume behind, which a
// person has to put back or delete.
func (h *Host) abandoned(folder string, stages []string) {
	h.logger.Warn("a killed process left files of the volume in a stage folder: look, and put them back or delete it", "folder", folder, "stages", stages)
}

// Name returns the name that a package has here.
func Name(src *tool.Package, spec config.Package) string {
	if spec.As != "" {
		return spec.As
	}
	return src.Manifest.Name
}

// Load holds a package against what was approved of it, before any of it runs
// and again with the tools that its module describes, and returns it ready to be
// called. A package that nobody approved yet is approved by this first use. One
// that does not load is a record of the audit log.
func (h *Host) Load(ctx context.Context, src *tool.Package, spec config.Package, o trust.Options) (*runtime.Package, error) {
	p, err := h.load(ctx, src, spec, o)
	if err == nil {
		return p, nil
	}
	if ctx.Err() != nil {
		return nil, err // nothing of the package's
	}
	return nil, h.failed(src, spec, err)
}

// failed puts on record that a package did not load, and returns why.
func (h *Host) failed(src *tool.Package, spec config.Package, err error) error {
	l, ok := errors.AsType[*runtime.LoadError](err)
	if !ok {
		l = &runtime.LoadError{Package: Name(src, spec), Phase: "trust", Err: err}
	}
	h.log.LoadFailed(l)
	if errors.Is(err, runtime.ErrLink) {
		err = linkFault(src, err)
	}
	return err
}

func (h *Host) load(ctx context.Context, src *tool.Package, spec config.Package, o trust.Options) (*runtime.Package, error) {
	c := Candidate(src, spec)
	if err := h.trust.Precheck(c, o); err != nil {
		return nil, err
	}
	p, err := h.engine.Load(ctx, src, binding(src, spec, h.trust.Granted(c)))
	if err != nil {
		return nil, err
	}
	h.tellStart(p)
	for _, t := range p.Tools() {
		c.Definitions = append(c.Definitions, t.Definition)
	}
	if err := checkTools(src, c.Definitions, spec); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	record, first, err := h.trust.Admit(c, o)
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	if first {
		h.log.PackageAdmitted(record.Name, record.By, record.ModuleDigest)
	}
	h.describe(src, c.Definitions)
	return p, nil
}

// tellStart says of a package that would have its calls begin later why they do not.
func (h *Host) tellStart(p *runtime.Package) {
	if because := p.Because(); because != nil {
		h.logger.Info("each call runs a package's program from its start", "package", p.Name(), "because", because)
	}
}

// Candidate returns what is asked to be trusted. The definitions of a module
// that describes itself are the caller's to add.
func Candidate(src *tool.Package, spec config.Package) trust.Candidate {
	source := spec.Source
	if abs, err := filepath.Abs(source); err == nil {
		source = abs
	}
	return trust.Candidate{Name: Name(src, spec), Source: source, Package: src}
}

// Log returns the audit log.
func (h *Host) Log() *audit.Log { return h.log }

// Drain lets no further call begin and waits for those that run, until ctx
// ends. What the audit log collected is written then.
func (h *Host) Drain(ctx context.Context) error {
	defer h.log.Flush()
	return h.engine.Drain(ctx)
}

// Stop stops the calls that run and waits until they have ended, or ctx ends.
func (h *Host) Stop(ctx context.Context) error { return h.engine.Stop(ctx) }

// Close ends what works beside the calls and the engine, then the log and the
// store: the last records come from the engine. It returns a [*runtime.RunningError]
// when ctx ends before the calls that run do; the log says of each that it was
// given up, and is closed when the last one has ended.
func (h *Host) Close(ctx context.Context) error {
	h.work.stop()
	err := h.engine.Close(ctx)
	_, running := errors.AsType[*runtime.RunningError](err)
	if running || !h.work.wait(ctx) {
		h.log.Flush()
		go func() {
			ctx := context.WithoutCancel(ctx)
			_ = h.engine.Drain(ctx)
			h.work.wait(ctx)
			h.log.Close()
			if err := h.store.Close(); err != nil {
				h.logger.Error("store", "error", err)
			}
		}()
		return err
	}
	h.log.Close()
	if n := h.log.Lost(); n > 0 {
		h.logger.Warn("records are missing in the audit log: it could not be written", "records", n)
	}
	return errors.Join(err, h.store.Close())
}

// Undo takes back what a call committed.
func (h *Host) Undo(ctx context.Context, r runtime.UndoRequest) *runtime.Result {
	return h.engine.Undo(ctx, r)
}

// Changes returns what the calls of a principal's package committed and is kept,
// the newest first, at most limit.
func (h *Host) Changes(ctx context.Context, principal, pkg string, limit int) ([]*undo.Kept, error) {
	return h.engine.Changes(ctx, principal, pkg, limit)
}

// probe is the name in the state folder of an empty file that shows whether the
// folder can be written.
const probe = "ready.lock"

// Reachable reports why the state folder cannot be written, or the store not be
// read.
func (h *Host) Reachable(ctx context.Context) error {
	f, err := os.OpenFile(filepath.Join(h.state, probe), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	if _, err := h.store.Snapshot(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// reachTime is how long the store may take to answer whether it is there.
const reachTime = 2 * time.Second
