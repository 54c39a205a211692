package daemon

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// load makes a package ready to be called, or known well enough to be listed, and
// known to the metrics.
func (d *daemon) load(ctx context.Context, e *entry, src *tool.Package, o loading) (*runtime.Package, error) {
	trusting := trust.Options{TrustChanges: o.trustChanges}
	var p *runtime.Package
	var err error
	later := false
	if o.later {
		d.loads.Add(1)
		p, later, err = d.host.LoadLater(ctx, src, e.spec, trusting, func(err error) { d.loaded(e, err) })
		if !later {
			d.loads.Add(-1)
		}
	} else {
		p, err = d.host.Load(ctx, src, e.spec, trusting)
	}
	if !later && ctx.Err() == nil {
		d.metrics.Loaded(err == nil)
	}
	return p, err
}

// loaded takes note of how the load of a package ended that is listed already.
func (d *daemon) loaded(e *entry, err error) {
	d.loads.Add(-1)
	d.giveBack()
	d.metrics.Loaded(err == nil)
	if err == nil {
		d.Logger.Debug("package is loaded", "package", e.name)
		return
	}
	d.Logger.Error("package is not served any more: it was listed as it was recorded, and does not load", "package", e.spec.Source, "error", err)
	e.broke.Store(&err)
	select {
	case d.broke <- struct{}{}:
	default: // who looks will find this one, too
	}
}

// giveBack gives the memory that loading packages took back to the system when none is
// loading any more: a module is read, rewritten and hashed in many times its size, and a
// daemon that is called seldom would keep that for long.
func (d *daemon) giveBack() {
	if d.loads.Load() == 0 {
		go debug.FreeOSMemory()
	}
}

// mend takes what does not load off the lists, until the daemon is told to stop.
func (d *daemon) mend() {
	for {
		select {
		case <-d.told.Done():
			return
		case <-d.broke:
		}
		if err := d.unlist(); err != nil {
			d.Logger.Error("list of tools", "error", err)
		}
	}
}

// unlist serves what is served but for what does not load.
func (d *daemon) unlist() error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	for a := range d.attaches {
		if healthy := d.unbroken(a.entries); len(healthy) < len(a.entries) {
			if err := a.server.Replace(packages(healthy), a.hostTools...); err != nil {
				return err
			}
		}
	}
	healthy := d.unbroken(d.serving)
	if len(healthy) == len(d.serving) {
		return nil
	}
	return d.apply(d.config, &plan{entries: healthy})
}

// unbroken returns the entries that load, or may, and takes the names from the
// others.
func (d *daemon) unbroken(es []*entry) []*entry {
	return slices.DeleteFunc(slices.Clone(es), func(e *entry) bool {
		if e.broken() == nil {
			return false
		}
		d.pool.forget(e)
		return true
	})
}

// packages returns the packages of entries as a server takes them.
func packages(es []*entry) []mcpserver.Package {
	ps := make([]mcpserver.Package, len(es))
	for i, e := range es {
		ps[i] = e.pkg
	}
	return ps
}

// warm has the packages loaded in the background that are only listed.
func warm(es []*entry) {
	for _, e := range es {
		e.pkg.Warm()
	}
}
