// Package host is what every command that runs tools stands on: an engine, the
// audit log that it reports to, and the record of what was approved.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// Options of a [Host].
type Options struct {
	State    string           // folder of the audit log, of approvals and of managed volumes
	Cache    string           // folder of built and compiled modules; empty: none is kept
	Config   *config.Config   // its limits and those of the audit log; nil: the defaults
	Observer runtime.Observer // told after the audit log
	Logger   *slog.Logger     // nil: nothing is logged
}

// Host runs packages that are approved. It is safe for concurrent use.
type Host struct {
	state  string
	engine *runtime.Engine
	log    *audit.Log
	trust  *trust.Store
	logger *slog.Logger
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
	h := &Host{state: o.State, trust: trust.Open(o.State), logger: o.Logger}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	c := o.Config
	if c == nil {
		c = config.Default()
	}
	if h.log, err = OpenLog(o.State, c); err != nil {
		return nil, err
	}
	h.log.OnError(func(err error) { h.logger.Error("audit log", "error", err) })
	h.engine, err = runtime.New(ctx, runtime.Options{
		Cache:    Compiled(o.Cache),
		Reserved: slices.DeleteFunc([]string{o.Cache}, func(dir string) bool { return dir == "" }),
		State:    o.State,
		Limits:   runtime.CallLimits{Calls: c.Limits.Calls, Waiting: c.Limits.Waiting, Memory: c.Limits.Memory},
		Observer: runtime.Tee(h.log.Observer(), runtime.Observer{Abandoned: h.abandoned}, o.Observer),
	})
	if err != nil {
		return nil, errors.Join(err, h.log.Close())
	}
	return h, nil
}

// OpenLog opens the audit log of a state folder as the configuration says.
func OpenLog(state string, c *config.Config) (*audit.Log, error) {
	return audit.Open(state, audit.Options{MaxSize: c.Audit.MaxSize, Keep: c.Audit.Keep})
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
	l, ok := errors.AsType[*runtime.LoadError](err)
	if !ok {
		l = &runtime.LoadError{Package: Name(src, spec), Phase: "trust", Err: err}
	}
	h.log.LoadFailed(l)
	if errors.Is(err, runtime.ErrLink) {
		err = linkFault(src, err)
	}
	return nil, err
}

func (h *Host) load(ctx context.Context, src *tool.Package, spec config.Package, o trust.Options) (*runtime.Package, error) {
	c := Candidate(src, spec)
	if err := h.trust.Precheck(c, o); err != nil {
		return nil, err
	}
	p, err := h.engine.Load(ctx, src, binding(spec))
	if err != nil {
		return nil, err
	}
	for _, t := range p.Tools() {
		c.Definitions = append(c.Definitions, t.Definition)
	}
	record, first, err := h.trust.Admit(c, o)
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	if first {
		h.log.PackageAdmitted(record.Name, record.By, record.ModuleDigest)
	}
	return p, nil
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

func binding(spec config.Package) runtime.Binding {
	return runtime.Binding{
		As: spec.As, Mode: spec.Mode, Folders: spec.Folders, Managed: spec.Managed,
		Env: spec.Env, OptionalWrites: spec.OptionalWrites,
		Limits: runtime.CallLimits{Calls: spec.Limits.Calls, Waiting: spec.Limits.Waiting, Memory: spec.Limits.Memory},
	}
}

// Log returns the audit log.
func (h *Host) Log() *audit.Log { return h.log }

// Drain lets no further call begin and waits for those that run, until ctx
// ends.
func (h *Host) Drain(ctx context.Context) error { return h.engine.Drain(ctx) }

// Stop stops the calls that run and waits until they have ended, or ctx ends.
func (h *Host) Stop(ctx context.Context) error { return h.engine.Stop(ctx) }

// Close ends the engine, then the log: the last records come from the engine. It
// returns a [*runtime.RunningError] when ctx ends before the calls that run do;
// the log says of each that it was given up, and is closed when the last one has
// ended.
func (h *Host) Close(ctx context.Context) error {
	err := h.engine.Close(ctx)
	if _, ok := errors.AsType[*runtime.RunningError](err); ok {
		go func() {
			_ = h.engine.Drain(context.WithoutCancel(ctx))
			if err := h.log.Close(); err != nil {
				h.logger.Error("audit log", "error", err)
			}
		}()
		return err
	}
	if n := h.log.Lost(); n > 0 {
		h.logger.Warn("records are missing in the audit log: it could not be written", "records", n)
	}
	return errors.Join(err, h.log.Close())
}

// SpecError is something that the operator gives a package and that does not fit
// it.
type SpecError struct {
	Package string
	Field   string // of the package's entry in the configuration: volumes.NAME, env.NAME
	Problem string
	Mend    string
}

// Error returns one line.
func (e *SpecError) Error() string {
	return fmt.Sprintf("package %s: %s: %s; %s", e.Package, e.Field, e.Problem, e.Mend)
}

// CheckSpec reports, as a [*SpecError], what the operator gives a package that it
// does not request, and folders that are not there.
func CheckSpec(src *tool.Package, spec config.Package) error {
	fault := func(field, problem, mend string) error {
		return &SpecError{Package: Name(src, spec), Field: field, Problem: problem, Mend: mend}
	}
	requested := func(volume string) bool {
		return slices.ContainsFunc(src.Manifest.Requests.Volumes, func(r tool.VolumeRequest) bool { return r.Name == volume })
	}
	for _, given := range []map[string]string{spec.Folders, spec.Managed} {
		for _, volume := range slices.Sorted(maps.Keys(given)) {
			if !requested(volume) {
				return fault("volumes."+volume, "the package requests no such volume", "remove it")
			}
		}
	}
	for _, volume := range slices.Sorted(maps.Keys(spec.Folders)) {
		switch info, err := os.Stat(spec.Folders[volume]); {
		case err != nil:
			return fault("volumes."+volume, "folder "+spec.Folders[volume]+": not found", "make it first")
		case !info.IsDir():
			return fault("volumes."+volume, spec.Folders[volume]+": not a folder", "name a folder")
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(spec.Env)) {
		if !slices.Contains(src.Manifest.Requests.Env, variable) {
			return fault("env."+variable, "the package requests no such variable", "remove it")
		}
	}
	return nil
}

// Reachable reports why the state folder cannot be written.
func (h *Host) Reachable() error {
	f, err := os.OpenFile(filepath.Join(h.state, audit.FileName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return f.Close()
}
