package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

type serveCmd struct {
	bindings

	Packages              []string `arg:"" optional:"" name:"package" help:"Folders or .wasm files of packages, besides those of the configuration."`
	HTTP                  string   `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address. Default: what the configuration says, else 127.0.0.1:8080, unless --stdio is given."`
	Stdio                 bool     `help:"Serve one client over standard input and output, by the running daemon of the same state folder where there is one."`
	WithoutAuthentication bool     `name:"without-authentication" help:"Allow an address that others reach although nobody has to authenticate."`
}

func (serveCmd) Help() string {
	return `Each tool is listed with the hints that are enforced on it, never with safer ones. MCP is at /mcp, metrics are at
/metrics, health at /healthz and /readyz. SIGHUP, or a change of the configuration or of a package, reloads. SIGTERM
lets the calls that run come to their end.

Examples:

    sandboxd serve guests/notes guests/liars
    sandboxd serve --config sandboxd.yaml
    sandboxd serve --stdio guests/notes guests/search-index --volume notes/data=./my-notes

A host of MCP servers starts it so; paths are absolute, because a host has a folder of its own:

    {"mcpServers": {"notes": {"command": "/path/to/sandboxd", "args": ["serve", "--stdio", "/path/to/guests/notes"]}}}`
}

// Run serves until an interrupt or, with --stdio, until the client closes its
// side.
func (c *serveCmd) Run(a *app) error {
	a.progress.always(a.stderr)
	known := map[string]*tool.Package{}
	first, err := c.first(a, known)
	if err != nil {
		return err
	}
	conf := first.config
	if c.Stdio && c.HTTP == "" {
		err := daemon.Attach(a.ctx, a.state, daemon.Greeting{Version: version(), Packages: conf.Packages, HostTools: conf.HostTools, TrustChanges: c.TrustChanges}, a.stdin, a.stdout)
		if !errors.Is(err, daemon.ErrNoDaemon) {
			return err
		}
	}
	reload, release := hangups()
	defer release()
	return daemon.Run(a.ctx, c.options(a, first, known, reload))
}

// first reads what is served from the start. A package that is not there, or is
// named twice, is a mistake of who named it.
func (c *serveCmd) first(a *app, known map[string]*tool.Package) (r reading, err error) {
	if r.config, err = c.config(a); err != nil {
		return reading{}, err
	}
	if len(r.config.Packages) == 0 {
		return reading{}, errors.New("serve: no package; name a folder or a .wasm file, or list packages in the configuration")
	}
	a.collect(r.config) // modules are large: reading them is what a start takes memory for
	if r.sources, err = a.sources(c.bindings, r.config, known, a.surface); err != nil {
		return reading{}, err
	}
	seen := map[string]bool{}
	for i, s := range r.sources {
		spec := r.config.Packages[i]
		if seen[spec.Source+"\x00"+spec.As] {
			return reading{}, fmt.Errorf("serve: %s is named twice; name it once", spec.Source)
		}
		seen[spec.Source+"\x00"+spec.As] = true
		if _, err := os.Stat(spec.Source); err != nil && s.Err != nil {
			return reading{}, s.Err
		}
		if s.Err == nil {
			a.warn(s.Package)
		}
	}
	return r, nil
}

// config reads the configuration with the command line in it.
func (c *serveCmd) config(a *app) (*config.Config, error) {
	conf, err := a.entries(false, c.Packages)
	if err != nil {
		return nil, err
	}
	return conf, c.listen(conf)
}

// hangups returns a channel of the signals that ask for a reload.
func hangups() (reload <-chan os.Signal, release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reading is a configuration with the packages that it names, as they were read.
type reading struct {
	config  *config.Config
	sources []daemon.Source
}

// listen takes the flags into the configuration.
func (c *serveCmd) listen(conf *config.Config) error {
	if c.HTTP == "" {
		return nil
	}
	conf.Listen.HTTP = c.HTTP
	conf.Listen.WithoutAuthentication = conf.Listen.WithoutAuthentication || c.WithoutAuthentication
	if err := config.CheckListen(c.HTTP, len(conf.Principals) > 0, conf.Listen.WithoutAuthentication); err != nil {
		if errors.Is(err, config.ErrExposed) {
			err = fmt.Errorf("%w, or give --without-authentication", err)
		}
		return fmt.Errorf("--http %w", err)
	}
	return nil
}

// options returns the daemon's. What was read already is what it starts with.
func (c *serveCmd) options(a *app, first reading, known map[string]*tool.Package, reload <-chan os.Signal) daemon.Options {
	next := &first
	o := daemon.Options{
		Config: func() (*config.Config, error) {
			if next != nil {
				return next.config, nil
			}
			return c.config(a)
		},
		Sources: func(conf *config.Config) ([]daemon.Source, error) {
			if r := next; r != nil {
				next = nil
				return r.sources, nil
			}
			return a.sources(c.bindings, conf, known, a.surface)
		},
		Source: a.surface, State: a.state, Cache: a.cache, Reload: reload,
		TrustChanges: c.TrustChanges, HTTP: c.HTTP != "" || !c.Stdio,
		Observer: a.progress.compiling(), Logger: a.serverLogger(first.config.Log), Version: version(), Commit: commit(),
		Started: a.started,
	}
	if a.config != "" {
		o.Watch = []string{a.config}
	}
	if c.Stdio {
		o.Stdio = &daemon.Stdio{In: a.stdin, Out: a.stdout}
	}
	return o
}

// started says where the daemon is reached.
func (a *app) started(http, metrics string) {
	if metrics == "" {
		metrics = http
	}
	fmt.Fprintf(a.stderr, "listening: MCP at http://%s/mcp, metrics at http://%s/metrics\n", http, metrics)
}

// Defaults of the garbage collector of a daemon; see "How is the garbage
// collector set?" in DESIGN.md.
const defaultGCPercent = 400

// collect sets the garbage collector: as the environment says, which Go has read
// already, else as the configuration says.
func (a *app) collect(c *config.Config) {
	percent, limit := c.Process.GCPercent, c.Process.MemoryLimit
	if percent == 0 {
		percent = defaultGCPercent
	}
	if limit == 0 {
		limit = c.Limits.Memory // what the calls may take together
	}
	if a.getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if a.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// serverLogger returns the log of a command that stays up.
func (a *app) serverLogger(l config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // the configuration was checked
	}
	return slog.New(term.Handler(a.stderr, l.Format, level))
}
