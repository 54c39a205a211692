package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/tool"
)

// settings returns the operator's configuration, or what holds without one.
func (a *app) settings() (*config.Config, error) {
	if a.config == "" {
		return config.Default(), nil
	}
	return config.Load(a.config)
}

// packages returns the configuration with the packages at the paths in it, and
// the folders that flags give to each, and those packages as they were read.
// With only set the configuration's other packages are left out.
func (a *app) packages(b bindings, only bool, paths ...string) (*config.Config, []*tool.Package, error) {
	c, err := a.entries(only, paths)
	if err != nil {
		return nil, nil, err
	}
	sources, err := a.sources(b, c, nil, a.source)
	if err != nil {
		return nil, nil, err
	}
	var ps []*tool.Package
	for _, s := range sources {
		if s.Err != nil {
			return nil, nil, s.Err
		}
		ps = append(ps, s.Package)
	}
	return c, ps, distinct(c, ps)
}

// entries returns the configuration with the packages at the paths in it.
func (a *app) entries(only bool, paths []string) (*config.Config, error) {
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	named, err := a.named(c, paths)
	if err != nil {
		return nil, err
	}
	if only {
		c.Packages = named
	} else {
		c.Packages = merged(c.Packages, named)
	}
	return c, nil
}

// sources reads the packages of a configuration and gives them the folders of the
// flags. What is wrong with one is its own error. known holds packages by source
// as they were read before, so that it is known whose a flag is, and what is read
// is added to it; nil: nothing is known. read reads one, of several at once.
func (a *app) sources(b bindings, c *config.Config, known map[string]*tool.Package, read func(path string) (*tool.Package, error)) ([]daemon.Source, error) {
	flags, err := b.volumes()
	if err != nil {
		return nil, err
	}
	sources := readAll(c.Packages, read)
	ps := make([]*tool.Package, len(c.Packages)) // nil: not known
	for i, p := range c.Packages {
		src, err := sources[i].Package, sources[i].Err
		if ps[i] = src; err != nil {
			ps[i] = known[p.Source]
		} else if known != nil {
			known[p.Source] = src
		}
		if err != nil && len(flags) > 0 && ps[i] == nil {
			return nil, err // whose a flag is cannot be said
		}
	}
	if err := handOut(flags, c.Packages, ps); err != nil {
		return nil, err
	}
	for i, src := range sources {
		if src.Err != nil {
			continue
		}
		if f, ok := errors.AsType[*host.SpecError](host.CheckSpec(src.Package, c.Packages[i], c.Store != "")); ok {
			sources[i].Err = c.Fault(fmt.Sprintf("packages[%d].%s", i, f.Field), f.Problem, f.Mend, f)
		}
	}
	return sources, nil
}

// readAll reads packages, as many at once as there are processors.
func readAll(specs []config.Package, read func(path string) (*tool.Package, error)) []daemon.Source {
	sources := make([]daemon.Source, len(specs))
	var work errgroup.Group
	work.SetLimit(goruntime.GOMAXPROCS(0))
	for i, p := range specs {
		work.Go(func() error {
			sources[i].Package, sources[i].Err = read(p.Source)
			return nil
		})
	}
	work.Wait() // its functions return no error
	return sources
}

// distinct refuses two packages of one name.
func distinct(c *config.Config, ps []*tool.Package) error {
	where := map[string]string{}
	for i, src := range ps {
		source, name := c.Packages[i].Source, host.Name(src, c.Packages[i])
		if other, twice := where[name]; twice {
			return c.Fault(fmt.Sprintf("packages[%d]", i), fmt.Sprintf("%s and %s are both named %s", other, source, name), "give one another name with as", nil)
		}
		where[name] = source
	}
	return nil
}

// named returns an entry for each path: the configuration's, where it has one of
// that source or that name.
func (a *app) named(c *config.Config, paths []string) ([]config.Package, error) {
	var out []config.Package
	for _, path := range paths {
		if strings.HasPrefix(path, "oci://") {
			return nil, fmt.Errorf("%s: %w", path, errNotYet)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", path, err)
		}
		i := slices.IndexFunc(c.Packages, func(p config.Package) bool { return p.Source == abs || p.As != "" && p.As == path })
		if i < 0 {
			out = append(out, config.Package{Source: abs, Limits: c.Limits.Package})
		} else {
			out = append(out, c.Packages[i])
		}
	}
	return out, nil
}

// merged returns the configured packages and those that are named besides.
func merged(configured, named []config.Package) []config.Package {
	out := slices.Clone(configured)
	for _, p := range named {
		if !slices.ContainsFunc(configured, func(q config.Package) bool { return p.Source == q.Source && p.As == q.As }) {
			out = append(out, p)
		}
	}
	return out
}

// source reads the package at a path, built first where it has a source.
func (a *app) source(path string) (*tool.Package, error) { return a.read(path, false) }

// surface is source for those who go on to load the package: the code of its module
// is read then, and only then.
func (a *app) surface(path string) (*tool.Package, error) { return a.read(path, true) }

func (a *app) read(path string, surfaceOnly bool) (*tool.Package, error) {
	b, err := a.builder()
	if err != nil {
		return nil, err
	}
	return tool.Loader{Build: b.Func(a.ctx), SurfaceOnly: surfaceOnly}.Load(path)
}

// handOut gives each package the folders of the volume flags that are for it. A
// flag goes before what the configuration says.
func handOut(flags []volumeFlag, specs []config.Package, ps []*tool.Package) error {
	given := make([]map[string]bool, len(ps))
	for _, v := range flags {
		flag := fmt.Sprintf("--volume %s=%s", v.name, v.dir)
		if v.pkg == "" && len(ps) > 1 {
			return fmt.Errorf("%s: several packages; say whose with PACKAGE/%s", flag, v.name)
		}
		i := 0
		if v.pkg != "" {
			flag = fmt.Sprintf("--volume %s/%s=%s", v.pkg, v.name, v.dir)
			i = slices.IndexFunc(specs, func(s config.Package) bool { return s.As == v.pkg })
			if i < 0 {
				i = slices.IndexFunc(ps, func(p *tool.Package) bool { return p.Manifest.Name == v.pkg }) // with flags, all are known
			}
		}
		if i < 0 || i >= len(ps) {
			return fmt.Errorf("%s: no package %s; there is %s", flag, v.pkg, names(ps, func(p *tool.Package) string { return p.Manifest.Name }))
		}
		requested := ps[i].Manifest.Requests.Volumes
		if !slices.ContainsFunc(requested, func(r tool.VolumeRequest) bool { return r.Name == v.name }) {
			return fmt.Errorf("%s: package %s requests no volume %s; it requests %s", flag, host.Name(ps[i], specs[i]), v.name,
				names(requested, func(r tool.VolumeRequest) string { return r.Name }))
		}
		if given[i][v.name] {
			return fmt.Errorf("%s: given twice", flag)
		}
		if given[i] == nil {
			given[i] = map[string]bool{}
		}
		given[i][v.name] = true
		if err := give(&specs[i], v); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// give sets the folder of a volume, by its absolute path.
func give(spec *config.Package, v volumeFlag) error {
	dir, err := filepath.Abs(v.dir)
	if err != nil {
		return err
	}
	spec.Folders, spec.Managed = maps.Clone(spec.Folders), maps.Clone(spec.Managed)
	if spec.Folders == nil {
		spec.Folders = map[string]string{}
	}
	spec.Folders[v.name] = dir
	delete(spec.Managed, v.name)
	return nil
}

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
