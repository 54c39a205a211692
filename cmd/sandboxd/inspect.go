package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

type inspectCmd struct {
	Package string `arg:"" help:"Folder or .wasm file of the package."`
	JSON    bool   `name:"json" help:"Print as JSON."`
}

func (inspectCmd) Help() string {
	return `No tool is called. A package whose module describes itself is asked for its description, with nothing granted.

Examples:

    sandboxd inspect ./notes
    sandboxd inspect ./notes --json`
}

// report is what is known of a package without calling a tool.
type report struct {
	Name             string        `json:"name"`
	Version          string        `json:"version"`
	ABI              tool.ABI      `json:"abi"`
	Digest           string        `json:"digest"`
	ModuleDigest     string        `json:"moduleDigest"`
	DefinitionDigest string        `json:"definitionDigest"`
	ModuleBytes      int           `json:"moduleBytes"`
	Tools            []toolReport  `json:"tools"`
	Requests         []string      `json:"requests"`
	Imports          []importGroup `json:"imports"`
	Proved           proof         `json:"proved"`
	Flows            []flow        `json:"flows"`
	Warnings         []string      `json:"warnings"`
}

// toolReport is one tool: what its author declares, what that means, and what
// is enforced and therefore listed.
type toolReport struct {
	Name      string                     `json:"name"`
	Title     string                     `json:"title"`
	Declared  capabilities.Claim         `json:"declared"`
	Effective capabilities.Effective     `json:"effective"`
	Enforced  capabilities.Effective     `json:"enforced"`
	Volumes   []capabilities.VolumeGrant `json:"volumes"`
	Notes     []string                   `json:"notes"`
}

// Run prints the report.
func (c *inspectCmd) Run(a *app) error {
	p, err := a.source(c.Package)
	if err != nil {
		return err
	}
	r, err := a.inspect(p)
	if err != nil {
		return err
	}
	if c.JSON {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", term.JSON(b))
		return err
	}
	return r.print(a)
}

func (a *app) inspect(p *tool.Package) (*report, error) {
	m := p.Manifest
	r := &report{
		Name: m.Name, Version: m.Version, ABI: m.ABI,
		Digest: p.Digest, ModuleDigest: p.ModuleDigest, DefinitionDigest: p.DefinitionDigest, ModuleBytes: len(p.Module),
		Requests: requestLines(m.Requests), Proved: prove(m.Requests), Warnings: append([]string{}, m.Warnings...),
	}
	var err error
	if r.Imports, err = imports(p.Module); err != nil {
		return nil, err
	}
	definitions, err := a.definitions(p)
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		r.Tools = append(r.Tools, newToolReport(d, m.Requests.Volumes))
	}
	r.Flows = flows(r.Tools)
	return r, nil
}

// definitions returns the tools that the manifest defines, or asks the module
// for them: an engine of its own loads it, with a state folder that nothing is
// kept in.
func (a *app) definitions(p *tool.Package) (_ []tool.Definition, err error) {
	if len(p.Manifest.Tools) > 0 {
		return p.Manifest.Tools, nil
	}
	state, err := os.MkdirTemp("", "sandboxd-inspect-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	e, err := runtime.New(a.ctx, runtime.Options{Cache: a.compiled(), State: filepath.Join(state, "state"), Observer: a.compiling()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(a.detached())) }()
	loaded, err := e.Load(a.ctx, p, runtime.Binding{})
	if err != nil {
		return nil, err
	}
	var ds []tool.Definition
	for _, t := range loaded.Tools() {
		ds = append(ds, t.Definition)
	}
	return ds, nil
}

// detached returns a context for what must be done even after an interrupt.
func (a *app) detached() context.Context { return context.WithoutCancel(a.ctx) }

func newToolReport(d tool.Definition, vs []tool.VolumeRequest) toolReport {
	e := d.Claim.Effective()
	policy := capabilities.Policy{}
	for _, v := range vs {
		access := v.Access
		if access == capabilities.NoAccess {
			access = capabilities.WriteAccess
		}
		policy.Volumes = append(policy.Volumes, capabilities.VolumeGrant{Name: v.Name, Path: v.Path, Access: access})
	}
	t := toolReport{
		Name: d.Name, Title: d.Title, Declared: d.Claim, Effective: e, Enforced: e.Listed(runtime.Judges()),
		Volumes: append([]capabilities.VolumeGrant{}, capabilities.Derive(e, policy).Volumes...),
	}
	t.Notes = claimNotes(t)
	return t
}

// claimNotes says where the list that clients get differs from what the author
// wrote, and why.
func claimNotes(t toolReport) []string {
	notes := []string{}
	if t.Declared.Contradictory() {
		notes = append(notes, "readOnlyHint: true and destructiveHint: true contradict each other; read-only is enforced")
	}
	if t.Effective.ReadOnly {
		return notes
	}
	if t.Effective.Destructive != t.Enforced.Destructive {
		notes = append(notes, "destructiveHint: false is not judged yet, listed as true")
	}
	if t.Effective.Idempotent != t.Enforced.Idempotent {
		notes = append(notes, "idempotentHint: true is not judged yet, listed as false")
	}
	return notes
}
