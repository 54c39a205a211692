package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/runtime"
)

type verifyCmd struct {
	bindings

	Package string `arg:"" help:"Folder or .wasm file of the package."`
	Cases   string `placeholder:"FILE" help:"Calls to make, see docs/verify.md. Default: cases.json or cases.yaml beside tool.yaml."`
	Format  string `enum:"text,json,sarif,junit" default:"text" help:"text or json (sarif, junit: not supported yet)."`
	Suggest bool   `help:"Print also the annotations that would claim all that was seen, as a part of tool.yaml."`
	Tool    string `placeholder:"NAME" help:"Verify this tool only."`
	Call    string `placeholder:"ID" help:"Make this call only, by its name in the report."`
}

func (verifyCmd) Help() string {
	return `Calls each tool with the cases of its package, with the examples and defaults of its input schema, and with the
least arguments that this requires, each call in a throw-away world that holds a copy of the package's testdata folder.
No folder of yours is given to a tool (--volume gives each call a copy), nothing is sent, nothing is kept, and nothing
need be approved. The relaxations that the package requests are in force; the report says which claim needs which.
Exit status: 0 no claim is broken, 3 one is, 1 the package does not load or no tool could be run.

Examples:

    sandboxd verify guests/notes
    sandboxd verify guests/search-index --suggest
    sandboxd verify guests/liars --tool start_log --format json`
}

// Run verifies a package.
func (c *verifyCmd) Run(a *app) error {
	if c.Format == "sarif" || c.Format == "junit" {
		return fmt.Errorf("verify: --format %s: %w", c.Format, errNotYet)
	}
	conf, sources, err := a.packages(c.bindings, true, c.Package)
	if err != nil {
		return err
	}
	if err := host.CheckLink(sources[0]); err != nil {
		return err
	}
	flags, err := c.volumes()
	if err != nil {
		return err
	}
	contents := map[string]string{}
	for _, f := range flags {
		contents[f.name] = f.dir
	}
	r, err := verify.Run(a.ctx, verify.Options{
		Package: sources[0], Folder: c.folder(), Cases: c.Cases, Contents: contents, Operator: operator(conf.Packages[0]),
		Tool: c.Tool, Call: c.Call, Line: c.line(a), Cache: host.Compiled(a.cache), Observer: a.progress.compiling(),
	})
	if err != nil {
		return err
	}
	if err := c.print(a, r); err != nil {
		return err
	}
	switch {
	case !r.Honest:
		return status(exitViolation)
	case r.Ran == 0:
		return fmt.Errorf("verify: package %s: no tool could be run; the report says why, cases may help", r.Package)
	}
	return nil
}

// folder is the package's folder as it was named.
func (c *verifyCmd) folder() string {
	if info, err := os.Stat(c.Package); err == nil && !info.IsDir() {
		return filepath.Dir(c.Package)
	}
	return c.Package
}

// operator is what the configuration gives a package that is verified.
func operator(p config.Package) runtime.Binding {
	return runtime.Binding{
		As: p.As, Env: p.Env, OptionalWrites: p.OptionalWrites, AppendOnly: p.AppendOnly, VolatileFiles: p.VolatileFiles,
		CommitOnError: p.CommitOnError,
	}
}

// line is the command line that verifies the package again.
func (c *verifyCmd) line(a *app) []string {
	words := []string{"sandboxd"}
	if a.config != "" {
		words = append(words, "--config", a.config)
	}
	words = append(words, "verify", c.Package)
	for _, v := range c.Volume {
		words = append(words, "--volume", v)
	}
	return words
}

func (c *verifyCmd) print(a *app, r *verify.Report) error {
	if c.Format == "json" { // what is suggested is a part of it
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", term.JSON(b))
		return err
	}
	if err := r.Print(a.stdout); err != nil || !c.Suggest {
		return err
	}
	return r.Suggestions(a.stdout)
}
