package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/audit"
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
// volume flags is found before anything is made in the state folder.
func (a *app) open(paths ...string) (_ *host, err error) {
	var sources []*tool.Package
	for _, p := range paths {
		src, err := a.source(p)
		if err != nil {
			return nil, err
		}
		sources = append(sources, src)
	}
	folders, err := a.folders(sources)
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
		State:    a.state,
		Observer: runtime.Tee(h.log.Observer(), a.compiling()),
	})
	if err != nil {
		return nil, err
	}
	for i, src := range sources {
		p, err := h.engine.Load(a.ctx, src, runtime.Binding{Folders: folders[i]})
		if err != nil {
			return nil, err
		}
		h.packages = append(h.packages, p)
	}
	return h, nil
}

// close ends the engine, then the log: the last records come from the engine.
func (h *host) close() error {
	var errs []error
	if h.engine != nil {
		errs = append(errs, h.engine.Close(h.app.detached()))
	}
	if h.log != nil {
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

// folders hands the volume flags out to the packages, in their order.
func (a *app) folders(ps []*tool.Package) ([]map[string]string, error) {
	out := make([]map[string]string, len(ps))
	for i := range out {
		out[i] = map[string]string{}
	}
	for _, v := range a.volumes {
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

// compiling says on a terminal that a module is compiled, which takes seconds.
func (a *app) compiling() runtime.Observer {
	w := a.progress()
	return runtime.Observer{Compile: func(pkg string, bytes int) func() {
		fmt.Fprintf(w, "compiling %s, %.1f MB\n", pkg, float64(bytes)/1e6)
		return nil
	}}
}

// logger returns the log of the host itself: stderr, warnings and worse.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
