package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
)

// plan is what a configuration comes to: the packages to serve, in its order.
type plan struct {
	entries []*entry
	fresh   []*entry // of entries, those that were loaded for it
	failed  []failure
}

// failure is a package that does not load.
type failure struct {
	spec config.Package
	err  error
}

func (p *plan) errors() []error {
	var errs []error
	for _, f := range p.failed {
		errs = append(errs, f.err)
	}
	return errs
}

// plan loads what the configuration names and what is not served the same way
// already. What is wrong with a package is its own failure: its files are not the
// operator's. Of two of one name, the second fails.
func (d *daemon) plan(c *config.Config, sources []Source, serving []*entry, o loading) *plan {
	found := make([]*entry, len(sources))
	failed := make([]error, len(sources))
	var work errgroup.Group
	work.SetLimit(2) // a compilation uses all cores by itself
	for i, source := range sources {
		spec, src := c.Packages[i], source.Package
		if failed[i] = source.Err; source.Err != nil {
			continue
		}
		if at := slices.IndexFunc(serving, func(e *entry) bool { return e.same(src, spec) }); at >= 0 {
			found[i] = serving[at]
			continue
		}
		work.Go(func() error {
			e, err := d.pool.fresh(d.told, src, spec, o)
			if err != nil {
				failed[i] = err
			} else {
				found[i] = e
			}
			return nil
		})
	}
	work.Wait() // its functions return no error
	p := &plan{}
	var twice []*entry
	for i, e := range found {
		if failed[i] == nil {
			if at := slices.IndexFunc(p.entries, func(o *entry) bool { return o.name == e.name }); at >= 0 {
				failed[i] = sameName(e.name, p.entries[at].spec.Source, e.spec.Source)
				twice = append(twice, e)
			}
		}
		if failed[i] != nil {
			p.failed = append(p.failed, failure{c.Packages[i], failed[i]})
			continue
		}
		p.entries = append(p.entries, e)
		if !slices.Contains(serving, e) {
			p.fresh = append(p.fresh, e)
		}
	}
	d.drop(slices.DeleteFunc(twice, func(e *entry) bool { return slices.Contains(serving, e) }))
	return p
}

func sameName(name, first, second string) error {
	return fmt.Errorf("package %s: %s and %s both have this name; give one another with as: in the configuration", name, first, second)
}

// distinct refuses two packages of one name.
func distinct(specs []config.Package, sources []Source) error {
	where := map[string]string{}
	for i, src := range sources {
		if src.Err != nil {
			continue
		}
		name := host.Name(src.Package, specs[i])
		if other, twice := where[name]; twice {
			return sameName(name, other, specs[i].Source)
		}
		where[name] = specs[i].Source
	}
	return nil
}

// apply serves what was planned and lets go of the rest. On an error what was
// served before is served on.
func (d *daemon) apply(c *config.Config, p *plan) error {
	if err := d.server.Replace(packages(p.entries), c.HostTools...); err != nil {
		d.drop(p.fresh)
		return err
	}
	d.pool.install(p.fresh)
	served := d.server.Names()
	for _, e := range p.entries {
		d.metrics.Serve(e.name, served[e.name])
		d.host.Route(e.name, e.spec.Outbox)
	}
	var gone []*entry
	for _, e := range d.serving {
		if !slices.Contains(p.entries, e) && d.pool.release(e) {
			gone = append(gone, e)
			d.forget(e.name)
		}
	}
	d.tell(p)
	d.serving, d.config = p.entries, c
	absent := len(c.Packages) - len(p.entries)
	d.absent.Store(int32(absent))
	d.metrics.NotServed(absent)
	d.grace.Store(int64(c.Grace))
	d.drop(gone)
	warm(p.fresh)
	return nil
}

// tell says what a plan changes.
func (d *daemon) tell(p *plan) {
	for _, e := range p.fresh {
		d.Logger.Info("package is served", "package", e.name, "tools", len(e.pkg.Tools()), "digest", e.digest)
	}
	for _, e := range d.serving {
		if !slices.ContainsFunc(p.entries, func(n *entry) bool { return n.name == e.name }) {
			d.Logger.Info("package is served no more", "package", e.name)
		}
	}
}

// forget gives the place of a name in the metrics free and leaves its messages to
// others, once nobody serves a package of that name.
func (d *daemon) forget(name string) {
	if !d.pool.has(name) {
		d.metrics.Forget(name)
		d.host.Unroute(name)
	}
}

// drop closes packages once the calls that run in them have ended.
func (d *daemon) drop(es []*entry) {
	grace := time.Duration(d.grace.Load())
	for _, e := range es {
		d.closing.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), grace)
			defer cancel()
			if err := e.pkg.Close(ctx); err != nil {
				d.Logger.Warn("package was closed with an error", "package", e.name, "error", err)
			}
		})
	}
}

// reload takes the configuration anew, whole or not at all. A package that is
// configured as before and whose new files do not load is served on as it was
// loaded: its change is not the configuration's fault. Of a look at changed files
// that finds everything as it is, nothing is told.
func (d *daemon) reload(asked bool) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	changed, err := d.tryReload()
	if err == nil && !changed && !asked && !d.refused || d.told.Err() != nil {
		return
	}
	d.refused = err != nil
	d.metrics.Reloaded(err == nil)
	d.host.Log().ConfigReloaded(err)
	if err != nil {
		d.Logger.Error("configuration is not taken, what was served before is served on", "error", err)
		return
	}
	d.Logger.Info("configuration and packages are taken", "packages", len(d.serving))
}

// principals takes the principals of a changed configuration at once: who may
// call no more must not wait for packages to be loaded. What is wrong with the
// configuration is told by the reload that follows.
func (d *daemon) principals() {
	if c, err := d.Config(); err == nil && d.guarded(c) == nil {
		d.admit(c)
	}
}

// admit lets the principals of a configuration call, and nobody else.
func (d *daemon) admit(c *config.Config) {
	before := *d.auth.Swap(&c.Principals)
	if reflect.DeepEqual(before, c.Principals) {
		return
	}
	d.Logger.Info("principals are taken", "principals", len(c.Principals))
	if len(c.Principals) == 0 {
		d.tellOpen(slog.LevelWarn)
	}
}

// tellOpen says that anybody may call, where that is so.
func (d *daemon) tellOpen(level slog.Level) {
	if !d.HTTP || len(*d.auth.Load()) > 0 {
		return
	}
	if d.inForce.Listen.WithoutAuthentication {
		level = slog.LevelWarn
	}
	d.Logger.Log(d.life, level, "nobody has to authenticate: whoever reaches the address may call", "address", d.inForce.Listen.HTTP)
}

func (d *daemon) tryReload() (changed bool, err error) {
	c, err := d.Config()
	if err != nil {
		return false, err
	}
	if err := d.guarded(c); err != nil {
		return false, err
	}
	d.admit(c)
	sources, err := d.Sources(c)
	if err != nil {
		return false, err
	}
	p := d.plan(c, sources, d.serving, loading{trustChanges: d.TrustChanges})
	if err := d.keep(p); err != nil {
		d.drop(p.fresh)
		return false, err
	}
	if fixed := fixedSettings(d.inForce, c); len(fixed) > 0 {
		d.Logger.Warn("changed settings take effect at the next start", "settings", fixed)
	}
	c.Listen = d.config.Listen // what it listens on, still
	changed = !slices.Equal(p.entries, d.serving) || !reflect.DeepEqual(c, d.config)
	return changed, d.apply(c, p)
}

// keep takes into the plan what is served now of packages that are configured as
// before and do not load any more. Others that do not load are an error.
func (d *daemon) keep(p *plan) error {
	for _, f := range p.failed {
		if !slices.ContainsFunc(d.config.Packages, func(s config.Package) bool { return reflect.DeepEqual(s, f.spec) }) {
			return errors.Join(p.errors()...)
		}
		if old := slices.IndexFunc(d.serving, func(e *entry) bool { return reflect.DeepEqual(e.spec, f.spec) }); old >= 0 {
			p.entries = append(p.entries, d.serving[old])
			d.Logger.Error("package is served on as it was: its change is not taken", "package", f.spec.Source, "error", f.err)
		} else {
			d.Logger.Error("package is not served", "package", f.spec.Source, "error", f.err)
		}
	}
	return nil
}

// guarded refuses a configuration whose principals would leave the addresses
// that the daemon listens on, until its next start, open to everybody.
func (d *daemon) guarded(c *config.Config) error {
	old := d.inForce.Listen
	for _, addr := range []string{old.HTTP, old.Metrics} {
		if !d.HTTP || addr == "" {
			continue
		}
		if err := config.CheckListen(addr, len(c.Principals) > 0, old.WithoutAuthentication); err != nil {
			return fmt.Errorf("principals: the daemon listens on %w", err)
		}
	}
	return nil
}

// fixedSettings names what differs and a running daemon does not change.
func fixedSettings(inForce, c *config.Config) (names []string) {
	limits := func(l config.Limits) config.Limits { l.Package = config.PackageLimits{}; return l }
	for _, setting := range []struct {
		name    string
		differs bool
	}{
		{"listen", inForce.Listen != c.Listen},
		{"limits", limits(inForce.Limits) != limits(c.Limits)},
		{"store", inForce.Store != c.Store},
		{"keep", inForce.Keep != c.Keep},
		{"audit", inForce.Audit != c.Audit},
		{"log", inForce.Log != c.Log},
		{"traces", inForce.Traces != c.Traces},
		{"process", inForce.Process != c.Process},
		{"wasmOpt", inForce.WasmOpt != c.WasmOpt},
	} {
		if setting.differs {
			names = append(names, setting.name)
		}
	}
	return names
}
