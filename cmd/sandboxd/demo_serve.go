package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	"github.com/sandboxd/sandboxd/internal/demo"
	"github.com/sandboxd/sandboxd/tool"
)

// serve serves the bundled packages over HTTP until an interrupt, with state and
// data in a temporary folder.
func (c *demoCmd) serve(a *app) (err error) {
	dir, err := os.MkdirTemp("", "sandboxd-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := guests.Extract(filepath.Join(dir, "source")); err != nil {
		return err
	}
	conf := config.Default()
	conf.Listen.HTTP = c.HTTP
	var sources []daemon.Source
	for _, name := range guests.Names() {
		src, spec, err := a.demoPackage(dir, name)
		if err != nil {
			return err
		}
		conf.Packages, sources = append(conf.Packages, spec), append(sources, daemon.Source{Package: src})
	}
	state := filepath.Join(dir, "state")
	return daemon.Run(a.ctx, daemon.Options{
		Config:  func() (*config.Config, error) { return conf, nil },
		Sources: func(*config.Config) ([]daemon.Source, error) { return sources, nil },
		Source:  a.source, State: state, Cache: a.cache, HTTP: true,
		Observer: a.progress.compiling(), Logger: a.serverLogger(conf.Log), Version: version(), Commit: commit(),
		Started: func(http, _ string) {
			fmt.Fprintf(a.stderr, "the bundled packages are at http://%s/mcp, metrics at http://%[1]s/metrics, until Ctrl-C; the log: sandboxd log --follow --state %s\n", http, state)
		},
	})
}

// demoPackage reads a bundled package and lays out what the demo gives it.
func (a *app) demoPackage(dir, name string) (*tool.Package, config.Package, error) {
	spec, err := demo.Entry(filepath.Join(dir, "source"), name)
	if err != nil {
		return nil, config.Package{}, err
	}
	src, err := a.source(spec.Source)
	if err != nil {
		return nil, config.Package{}, err
	}
	err = demo.Seed(&spec, name, filepath.Join(dir, "data", name), src.Manifest.Requests.Volumes)
	return src, spec, err
}
