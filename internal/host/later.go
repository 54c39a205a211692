package host

import (
	"context"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// LoadLater is [Host.Load] for who lists tools before they are called. A package that
// is trusted as it is, module and manifest, is returned with the tools that are on
// record, before it is compiled and before any of it runs: [runtime.Package.Warm] and
// its first call do that. How it ended is told to loaded, once, unless the package is
// closed before; where it failed, that is a record of the audit log, and the same
// package is loaded in full from then on. Any other package is loaded in full, and
// loaded is told nothing.
func (h *Host) LoadLater(ctx context.Context, src *tool.Package, spec config.Package, o trust.Options, loaded func(error)) (p *runtime.Package, later bool, err error) {
	c := Candidate(src, spec)
	record, known := h.trust.Recorded(c)
	if _, suspect := h.suspects.Load(src.Digest); !known || suspect {
		p, err := h.Load(ctx, src, spec, o)
		return p, false, err
	}
	definitions := src.Manifest.Tools
	if len(definitions) == 0 {
		definitions = h.described.of(src, record)
	}
	err = checkTools(src, definitions, spec)
	if err == nil {
		p, err = h.engine.LoadLater(ctx, src, binding(src, spec, record.Granted), runtime.Recorded{
			Tools: definitions,
			Check: func(now []tool.Definition) error {
				c := c
				c.Definitions = now
				if err := record.Holds(c); err != nil {
					return err
				}
				h.describe(src, now)
				return nil
			},
			Done: func(err error) {
				if err != nil {
					h.suspects.Store(src.Digest, true)
					err = h.failed(src, spec, err)
				} else {
					h.tellStart(p)
				}
				loaded(err)
			},
		})
	}
	switch {
	case err == nil:
		return p, true, nil
	case ctx.Err() != nil:
		return nil, false, err
	}
	return nil, false, h.failed(src, spec, err)
}

// describe keeps what a module that describes itself said.
func (h *Host) describe(src *tool.Package, definitions []tool.Definition) {
	if len(src.Manifest.Tools) > 0 {
		return
	}
	if err := h.described.keep(src, definitions); err != nil {
		h.logger.Debug("the order of a package's tools is not kept", "package", src.Manifest.Name, "error", err)
	}
}
