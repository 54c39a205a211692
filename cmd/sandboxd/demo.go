package main

import (
	"fmt"

	"github.com/sandboxd/sandboxd/internal/demo"
)

type demoCmd struct {
	JSON  bool `name:"json" help:"A JSON object a case, a line each."`
	Serve bool `help:"Stay up afterwards (not supported yet)."`
}

func (demoCmd) Help() string {
	return `It builds the bundled tool packages, serves them over MCP in this process, calls them with a real MCP client
and compares what is on disk before and after each call. State and data are in a temporary folder; only the cache
of built modules is kept. Exit status 0 when every case ended as it should.

Examples:

    sandboxd demo
    sandboxd demo --json`
}

// Run runs the demo.
func (c *demoCmd) Run(a *app) error {
	if c.Serve {
		return fmt.Errorf("demo --serve: serving over HTTP: %w", errNotYet)
	}
	sum, err := demo.Run(a.ctx, demo.Options{
		Out:      a.stdout,
		JSON:     c.JSON,
		Colour:   a.colour(a.stdout),
		Cache:    a.cache,
		Progress: a.progress(),
	})
	if err == nil && sum.Wrong > 0 {
		err = fmt.Errorf("demo: %d of %d cases did not end as they should", sum.Wrong, sum.Cases)
	}
	return err
}
