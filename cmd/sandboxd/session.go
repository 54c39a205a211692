package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// session is one package that a command works with, loaded.
type session struct {
	app  *app
	host *host.Host
	pkg  *runtime.Package
}

// open loads the package at a path. What is wrong with it or with the volume
// flags is found before anything is made in the state folder.
func (a *app) open(b bindings, path string) (_ *session, err error) {
	c, sources, err := a.packages(b, true, path)
	if err != nil {
		return nil, err
	}
	s := &session{app: a}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.host, err = host.Open(a.ctx, host.Options{State: a.state, Cache: a.cache, Config: c, Observer: a.progress.compiling(), Logger: a.logger()})
	if err != nil {
		return nil, err
	}
	a.warn(sources...)
	if s.pkg, err = s.host.Load(a.ctx, sources[0], c.Packages[0], trust.Options{TrustChanges: b.TrustChanges}); err != nil {
		return s, err
	}
	s.host.Route(s.pkg.Name(), c.Packages[0].Outbox)
	return s, nil
}

// warn tells what the manifests say that has no effect.
func (a *app) warn(sources ...*tool.Package) {
	for _, src := range sources {
		for _, w := range src.Manifest.Warnings {
			fmt.Fprintf(a.stderr, "warning: package %s: %s\n", src.Manifest.Name, term.Line(w))
		}
	}
}

// warnUnwritable says of the folders that flags gave and that the tools may
// write which cannot be written.
func (a *app) warnUnwritable(b bindings, pkg string, tools ...*runtime.Tool) {
	flags, err := b.volumes()
	if err != nil {
		return // open has refused them
	}
	for _, f := range flags {
		if f.pkg != "" && f.pkg != pkg || writable(f.dir) {
			continue
		}
		may := func(g capabilities.VolumeGrant) bool { return g.Name == f.name && g.Access == capabilities.WriteAccess }
		if slices.ContainsFunc(tools, func(t *runtime.Tool) bool { return slices.ContainsFunc(t.Grant.Volumes, may) }) {
			fmt.Fprintf(a.stderr, "warning: --volume %s=%s: the folder cannot be written; calls that change it will fail\n", f.name, f.dir)
		}
	}
}

// close ends what open made.
func (s *session) close() error {
	if s.host == nil {
		return nil
	}
	return s.host.Close(s.app.detached())
}

// detached returns a context for what must be done even after an interrupt.
func (a *app) detached() context.Context { return context.WithoutCancel(a.ctx) }

// logger returns the log of the host itself for commands that end: stderr,
// warnings and worse.
func (a *app) logger() *slog.Logger {
	return slog.New(term.Handler(a.stderr, "text", slog.LevelWarn))
}
