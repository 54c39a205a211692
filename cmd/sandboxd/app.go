package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"

	"github.com/sandboxd/sandboxd/internal/build"
)

// globals are the flags of every command, before or after its name.
type globals struct {
	Config string `placeholder:"FILE" help:"Operator configuration, see docs/configuration.md."`
	State  string `placeholder:"DIR" help:"Folder of the audit log, of approvals and of managed volumes. Default: $$XDG_STATE_HOME/sandboxd, else ~/.local/state/sandboxd."`
	Cache  string `placeholder:"DIR" help:"Folder of built and compiled modules; may be deleted. Default: $$XDG_CACHE_HOME/sandboxd, else sandboxd in the user's cache folder."`
}

// bindings are the flags of the commands that load packages.
type bindings struct {
	Volume       []string `name:"volume" sep:"none" placeholder:"[PACKAGE/]NAME=DIR" help:"Give a package the host folder DIR for the volume NAME that it requests. May be repeated."`
	TrustChanges bool     `help:"Accept packages that changed since they were approved, while developing."`
}

// app is what a command works with: the streams, the environment, and the
// global flags with their defaults filled in.
type app struct {
	ctx            context.Context // ends at an interrupt
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string
	config         string // absolute path of the operator's configuration; empty: none
	state, cache   string
	verbose        bool      // show all that a guest logged, and its stack
	progress       *progress // says that something takes its time
	builder        func() (*build.Builder, error)
}

// volumeFlag is one --volume.
type volumeFlag struct {
	pkg  string // empty where the flag names none
	name string
	dir  string
}

// set takes the global flags.
func (a *app) set(g globals) error {
	a.progress = newProgress(a.stderr)
	// One for all, since it builds one source at a time.
	a.builder = sync.OnceValues(func() (*build.Builder, error) {
		return build.New(build.Options{Cache: a.cache, Progress: a.progress})
	})
	var err error
	if g.Config != "" {
		if a.config, err = filepath.Abs(g.Config); err != nil {
			return fmt.Errorf("--config %s: %w", g.Config, err)
		}
	}
	if a.state = g.State; a.state == "" {
		if a.state, err = a.defaultState(); err != nil {
			return fmt.Errorf("state folder: %w; name one with --state", err)
		}
	}
	if a.cache = g.Cache; a.cache == "" {
		if a.cache, err = a.defaultCache(); err != nil {
			return fmt.Errorf("cache folder: %w; name one with --cache", err)
		}
	}
	return nil
}

// volumes returns what the --volume flags say.
func (b *bindings) volumes() ([]volumeFlag, error) {
	var vs []volumeFlag
	for _, s := range b.Volume {
		v, err := parseVolume(s)
		if err != nil {
			return nil, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

func parseVolume(s string) (volumeFlag, error) {
	name, dir, ok := strings.Cut(s, "=")
	v := volumeFlag{name: name, dir: dir}
	if pkg, name, ok := strings.Cut(name, "/"); ok {
		v.pkg, v.name = pkg, name
		if pkg == "" {
			return volumeFlag{}, fmt.Errorf("--volume %s: want [PACKAGE/]NAME=DIR", s)
		}
	}
	if !ok || v.name == "" || dir == "" {
		return volumeFlag{}, fmt.Errorf("--volume %s: want [PACKAGE/]NAME=DIR", s)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return volumeFlag{}, fmt.Errorf("--volume %s: folder %s: not found; make it first", s, dir)
	}
	if !info.IsDir() {
		return volumeFlag{}, fmt.Errorf("--volume %s: %s: not a folder", s, dir)
	}
	return v, nil
}

// getenv returns the last value of an environment variable, as shells do.
func (a *app) getenv(name string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(a.env[i], "="); k == name {
			return v
		}
	}
	return ""
}

// defaultState follows the XDG base directory specification 0.8: relative
// paths in its variables are ignored.
func (a *app) defaultState() (string, error) {
	if d := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "sandboxd"), nil
	}
	if goruntime.GOOS == "windows" {
		d, err := os.UserConfigDir()
		return filepath.Join(d, "sandboxd"), err
	}
	home := a.getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "state", "sandboxd"), nil
}

func (a *app) defaultCache() (string, error) {
	if d := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "sandboxd"), nil
	}
	d, err := os.UserCacheDir()
	return filepath.Join(d, "sandboxd"), err
}

// colour reports whether w may get colours (https://no-color.org).
func (a *app) colour(w io.Writer) bool {
	return isTerminal(w) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
