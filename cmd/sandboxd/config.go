package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Say what is wrong with the configuration."`
}

type configCheckCmd struct {
	File string `arg:"" optional:"" help:"The configuration. Default: that of --config, else sandboxd.yaml."`
}

func (configCheckCmd) Help() string {
	return `Reads the configuration and the packages that it names. Nothing of them is run.

Examples:

    sandboxd config check
    sandboxd config check /etc/sandboxd/sandboxd.yaml`
}

// Run checks a configuration.
func (c *configCheckCmd) Run(a *app) error {
	file := c.File
	if file == "" {
		file = a.config
	}
	if file == "" {
		file = "sandboxd.yaml"
	}
	var err error
	if a.config, err = filepath.Abs(file); err != nil {
		return err
	}
	conf, sources, err := a.packages(bindings{}, false)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("%s: it lists no packages; add some, or name them on the command line of serve", file)
	}
	for _, src := range sources {
		if err := host.CheckLink(src); err != nil {
			return err
		}
	}
	a.warn(sources...)
	if err := host.CheckRewriting(conf.WasmOpt); err != nil {
		fmt.Fprintf(a.stderr, "warning: %s: wasmOpt: %s; calls of programs that say reseeds will run from their start\n", file, term.Line(err.Error()))
	}
	var served []string
	for i, src := range sources {
		served = append(served, host.Name(src, conf.Packages[i]))
	}
	_, err = fmt.Fprintf(a.stdout, "%s: fine; it serves %s\n", file, strings.Join(served, ", "))
	return err
}

type tokenCmd struct {
	Name string `arg:"" help:"The principal's name."`
}

func (tokenCmd) Help() string {
	return `Makes a bearer token and prints the line of the configuration that accepts it. Only a hash is kept there: give the
token to whom it is for, it cannot be shown again.

Examples:

    sandboxd token alice`
}

// Run prints a new token and its entry in the configuration.
func (c *tokenCmd) Run(a *app) error {
	if !tool.ValidPackageName(c.Name) || c.Name == config.Local {
		return fmt.Errorf("token %s: not a name for a principal; use up to 64 lower-case letters, digits and hyphens, and not %s", term.Line(short(c.Name)), config.Local)
	}
	token, hash, err := config.NewToken()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "token: %s\n\nprincipals:\n  - {name: %s, token: \"sha256:%x\"}\n", token, c.Name, hash)
	return err
}
