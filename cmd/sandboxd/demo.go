package main

import (
	"fmt"
	"strconv"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/demo"
)

type demoCmd struct {
	JSON  bool   `name:"json" help:"A JSON object a case, a line each."`
	Serve bool   `help:"Stay up afterwards: serve the bundled packages over HTTP until an interrupt."`
	HTTP  string `name:"http" default:"127.0.0.1:8080" placeholder:"ADDR" help:"The address for --serve."`
}

func (demoCmd) Help() string {
	return `It builds the bundled tool packages, serves them over MCP in this process, calls them with a real MCP client
and compares files, keys and messages before and after each call. State and data are in a temporary folder; only the
cache of built modules is kept. Exit status 0 when every case ended as it should.

Examples:

    sandboxd demo
    sandboxd demo --json
    sandboxd demo --serve`
}

// width returns how wide a table may be: what the shell says of its terminal in
// COLUMNS, within what can be read.
func (a *app) width() int {
	const least, most = 80, 120
	n, err := strconv.Atoi(a.getenv("COLUMNS"))
	if err != nil || n <= 0 {
		return most
	}
	return min(max(n, least), most)
}

// Run runs the demo.
func (c *demoCmd) Run(a *app) error {
	if err := config.CheckListen(c.HTTP, false, false); err != nil {
		return fmt.Errorf("--http %w", err)
	}
	a.progress.always(a.stderr)
	sum, err := demo.Run(a.ctx, demo.Options{
		Out:      a.stdout,
		JSON:     c.JSON,
		Colour:   a.colour(a.stdout),
		Width:    a.width(),
		Cache:    a.cache,
		Progress: a.progress,
		Observer: a.progress.compiling(),
	})
	if err == nil && sum.Wrong > 0 {
		err = fmt.Errorf("demo: %d of %d cases did not end as they should", sum.Wrong, sum.Cases)
	}
	if err != nil || !c.Serve {
		return err
	}
	return c.serve(a)
}
