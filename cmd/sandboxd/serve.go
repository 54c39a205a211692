package main

import (
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
)

type serveCmd struct {
	bindings

	Packages []string `arg:"" optional:"" name:"package" help:"Folders or .wasm files of packages."`
	HTTP     string   `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address (not supported yet)."`
	Stdio    bool     `help:"Serve one client over standard input and output."`
}

func (serveCmd) Help() string {
	return `Each tool is listed with the hints that are enforced on it, never with safer ones.

Examples:

    sandboxd serve --stdio guests/notes
    sandboxd serve --stdio guests/notes guests/search-index --volume notes/data=./my-notes

A host of MCP servers starts it so; paths are absolute, because a host has a folder of its own:

    {"mcpServers": {"notes": {"command": "/path/to/sandboxd", "args": ["serve", "--stdio", "/path/to/guests/notes"]}}}`
}

// Run serves until the client closes its side or an interrupt.
func (c *serveCmd) Run(a *app) (err error) {
	if !c.Stdio {
		return fmt.Errorf("serve over HTTP: %w; use --stdio", errNotYet)
	}
	if c.HTTP != "" {
		return fmt.Errorf("--http %s: %w", c.HTTP, errNotYet)
	}
	if len(c.Packages) == 0 {
		return errors.New("serve: no package; name a folder or a .wasm file")
	}
	a.progress.always(a.stderr)
	h, err := a.open(c.bindings, c.Packages...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	for _, p := range h.packages {
		h.warnUnwritable(c.bindings, p, p.Tools()...)
	}
	s, err := mcpserver.New(mcpserver.Options{
		Packages: mcpserver.Packages(h.packages...),
		Version:  version(),
		Logger:   a.logger(),
	})
	if err != nil {
		return err
	}
	return s.ServeStdio(a.ctx, a.stdin, a.stdout)
}
