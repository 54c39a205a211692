package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/internal/trust"
)

type approveCmd struct {
	Package string `arg:"" help:"Folder or .wasm file of the package."`
	As      string `placeholder:"NAME" help:"The name that the package has in the configuration, where it is not its own."`
	DryRun  bool   `help:"Show what would be approved, approve nothing."`
}

func (approveCmd) Help() string {
	return `Shows what changed since the package was approved, and approves it: its module, its tools with their claims, and
what it requests. A running daemon of the same state folder serves it at once.

Examples:

    sandboxd approve guests/notes --dry-run
    sandboxd approve guests/notes`
}

// Run approves a package.
func (c *approveCmd) Run(a *app) error {
	conf, sources, err := a.packages(bindings{}, true, c.Package)
	if err != nil {
		return err
	}
	src, spec := sources[0], conf.Packages[0]
	if c.As != "" {
		spec.As = c.As
	}
	if err := host.CheckLink(src); err != nil {
		return err
	}
	candidate := host.Candidate(src, spec)
	if candidate.Definitions, err = a.definitions(src); err != nil {
		return err
	}
	store := trust.Open(a.state)
	if c.DryRun {
		diff, err := store.Review(candidate)
		if err != nil {
			return err
		}
		return a.printDiff(candidate.Name, diff, "would be approved")
	}
	diff, err := a.approve(conf, store, candidate)
	if err != nil {
		return err
	}
	return a.printDiff(candidate.Name, diff, "approved")
}

// approve approves a package and puts it on record. Nothing is approved where
// there is no log.
func (a *app) approve(conf *config.Config, trusted *trust.Store, c trust.Candidate) (diff string, err error) {
	s, err := host.OpenStore(a.ctx, a.state, conf)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	log := audit.New(s, audit.Options{OnError: func(err error) { a.logger().Error("audit log", "error", err) }})
	defer log.Close()
	if diff, err = trusted.Approve(c); err != nil {
		return "", err
	}
	log.PackageAdmitted(c.Name, "approve", c.Package.ModuleDigest)
	return diff, nil
}

func (a *app) printDiff(name, diff, done string) error {
	if diff == "" {
		_, err := fmt.Fprintf(a.stdout, "package %s: unchanged, %s\n", name, done)
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%spackage %s: %s\n", diff, name, done)
	return err
}

type pinsCmd struct {
	JSON bool `name:"json" help:"Print as JSON."`
	Lock bool `help:"Print sandboxd.lock: everything that is approved, to be reviewed and kept under version control."`
}

func (pinsCmd) Help() string {
	return `Examples:

    sandboxd pins
    sandboxd pins --lock > sandboxd.lock`
}

// Run lists what is approved.
func (c *pinsCmd) Run(a *app) error {
	store := trust.Open(a.state)
	if c.Lock {
		b, err := store.Lock()
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(b)
		return err
	}
	records, err := store.Records()
	if err != nil {
		return err
	}
	if c.JSON {
		b, err := json.MarshalIndent(records, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", term.JSON(b))
		return err
	}
	for _, r := range records {
		if _, err := fmt.Fprintf(a.stdout, "%-20s %s  %d tools  %s, %s  %s\n", r.Name, short(r.ModuleDigest), len(r.Tools), r.By,
			r.Approved.Local().Format("2006-01-02 15:04:05"), term.Line(r.Source)); err != nil {
			return err
		}
	}
	if len(records) == 0 {
		fmt.Fprintln(a.stderr, "nothing is approved yet; a package is approved when it is first used")
	}
	return nil
}
