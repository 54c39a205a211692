package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// host is an engine with its audit log and the packages of one command.
type host struct {
	app      *app
	engine   *runtime.Engine
	log      *audit.Log
	packages []*runtime.Package
}

// open loads the packages at the paths. What is wrong with them or with the
// volume flags is found before anything is made in the state folder; a package
// that does not load is a record of the log.
func (a *app) open(b bindings, paths ...string) (_ *host, err error) {
	sources, folders, err := a.sources(b, paths...)
	if err != nil {
		return nil, err
	}
	h := &host{app: a}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.log, err = audit.Open(a.state); err != nil {
		return nil, err
	}
	h.log.OnError(func(err error) { a.logger().Error("audit log", "error", err) })
	h.engine, err = runtime.New(a.ctx, runtime.Options{
		Cache:    a.compiled(),
		Reserved: []string{a.cache},
		State:    a.state,
		Observer: runtime.Tee(h.log.Observer(), a.progress.compiling(), runtime.Observer{Abandoned: a.abandoned}),
	})
	if err != nil {
		return nil, err
	}
	for i, src := range sources {
		for _, w := range src.Manifest.Warnings {
			fmt.Fprintf(a.stderr, "warning: package %s: %s\n", src.Manifest.Name, term.Line(w))
		}
		p, err := h.load(src, folders[i])
		if err != nil {
			return nil, err
		}
		h.packages = append(h.packages, p)
	}
	return h, nil
}

// abandoned says that a killed process left files of a volume behind, which a
// person has to put back or delete.
func (a *app) abandoned(folder string, stages []string) {
	a.logger().Warn("a killed process left files of the volume in a stage folder: look, and put them back or delete it", "folder", folder, "stages", stages)
}

// sources reads the packages at the paths and the folders that the flags give
// to each.
func (a *app) sources(b bindings, paths ...string) ([]*tool.Package, []map[string]string, error) {
	flags, err := b.volumes()
	if err != nil {
		return nil, nil, err
	}
	var ps []*tool.Package
	for _, path := range paths {
		p, err := a.source(path)
		if err != nil {
			return nil, nil, err
		}
		ps = append(ps, p)
	}
	folders, err := handOut(flags, ps)
	return ps, folders, err
}

func (h *host) load(src *tool.Package, folders map[string]string) (*runtime.Package, error) {
	p, err := h.engine.Load(h.app.ctx, src, runtime.Binding{Folders: folders})
	if err == nil {
		return p, nil
	}
	if l, ok := errors.AsType[*runtime.LoadError](err); ok {
		h.log.LoadFailed(l)
	}
	if errors.Is(err, runtime.ErrLink) {
		err = linkFault(src, err)
	}
	return nil, err
}

// warnUnwritable says of the folders that flags gave and that the tools may
// write which cannot be written.
func (h *host) warnUnwritable(b bindings, p *runtime.Package, tools ...*runtime.Tool) {
	flags, err := b.volumes()
	if err != nil {
		return // open has refused them
	}
	for _, f := range flags {
		if f.pkg != "" && f.pkg != p.Source().Manifest.Name || writable(f.dir) {
			continue
		}
		may := func(g capabilities.VolumeGrant) bool { return g.Name == f.name && g.Access == capabilities.WriteAccess }
		if slices.ContainsFunc(tools, func(t *runtime.Tool) bool { return slices.ContainsFunc(t.Grant.Volumes, may) }) {
			fmt.Fprintf(h.app.stderr, "warning: --volume %s=%s: the folder cannot be written; calls that change it will fail\n", f.name, f.dir)
		}
	}
}

// close ends the engine, then the log: the last records come from the engine.
func (h *host) close() error {
	var errs []error
	if h.engine != nil {
		errs = append(errs, h.engine.Close(h.app.detached()))
	}
	if h.log != nil {
		if n := h.log.Lost(); n > 0 {
			fmt.Fprintf(h.app.stderr, "warning: %d records are missing in the audit log: it could not be written\n", n)
		}
		errs = append(errs, h.log.Close())
	}
	return errors.Join(errs...)
}

// source reads the package at a path, built first where it has a source.
func (a *app) source(path string) (*tool.Package, error) {
	if strings.HasPrefix(path, "oci://") {
		return nil, fmt.Errorf("%s: %w", path, errNotYet)
	}
	b, err := a.builder()
	if err != nil {
		return nil, err
	}
	return tool.Load(path, b.Func(a.ctx))
}

// handOut gives each package the folders of the volume flags that are for it.
func handOut(flags []volumeFlag, ps []*tool.Package) ([]map[string]string, error) {
	out := make([]map[string]string, len(ps))
	for i := range out {
		out[i] = map[string]string{}
	}
	for _, v := range flags {
		flag := fmt.Sprintf("--volume %s=%s", v.name, v.dir)
		if v.pkg == "" && len(ps) > 1 {
			return nil, fmt.Errorf("%s: several packages; say whose with PACKAGE/%s", flag, v.name)
		}
		i := 0
		if v.pkg != "" {
			flag = fmt.Sprintf("--volume %s/%s=%s", v.pkg, v.name, v.dir)
			i = slices.IndexFunc(ps, func(p *tool.Package) bool { return p.Manifest.Name == v.pkg })
		}
		if i < 0 {
			return nil, fmt.Errorf("%s: no package %s; there is %s", flag, v.pkg, names(ps, packageName))
		}
		requested := ps[i].Manifest.Requests.Volumes
		if !slices.ContainsFunc(requested, func(r tool.VolumeRequest) bool { return r.Name == v.name }) {
			return nil, fmt.Errorf("%s: package %s requests no volume %s; it requests %s", flag, ps[i].Manifest.Name, v.name,
				names(requested, func(r tool.VolumeRequest) string { return r.Name }))
		}
		if _, twice := out[i][v.name]; twice {
			return nil, fmt.Errorf("%s: given twice", flag)
		}
		out[i][v.name] = v.dir
	}
	return out, nil
}

func packageName(p *tool.Package) string { return p.Manifest.Name }

// names joins names for a sentence.
func names[T any](xs []T, name func(T) string) string {
	if len(xs) == 0 {
		return "none"
	}
	var ss []string
	for _, x := range xs {
		ss = append(ss, name(x))
	}
	return strings.Join(ss, ", ")
}

// logger returns the log of the host itself: stderr, warnings and worse.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
