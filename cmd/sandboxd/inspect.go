package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

type inspectCmd struct {
	bindings

	Package string `arg:"" help:"Folder or .wasm file of the package."`
	JSON    bool   `name:"json" help:"Print as JSON."`
}

func (inspectCmd) Help() string {
	return `No tool is called. A package whose module describes itself is asked for its description, with nothing granted.

Examples:

    sandboxd inspect guests/notes
    sandboxd inspect guests/notes --json`
}

// report is what is known of a package without calling a tool.
type report struct {
	Name             string         `json:"name"`
	Version          string         `json:"version"`
	ABI              tool.ABI       `json:"abi"`
	Digest           string         `json:"digest"`
	ModuleDigest     string         `json:"moduleDigest"`
	DefinitionDigest string         `json:"definitionDigest"`
	ModuleBytes      int            `json:"moduleBytes"`
	Tools            []toolReport   `json:"tools"`
	Requests         []string       `json:"requests"`
	Relaxations      []string       `json:"relaxations"` // as the configuration names them
	Volumes          []volumeFolder `json:"volumes"`
	Imports          []importGroup  `json:"imports"`
	Proved           verify.Proof   `json:"proved"`
	Flows            []flow         `json:"flows"`
	Warnings         []string       `json:"warnings"`
}

// volumeFolder says where a volume is kept on the host.
type volumeFolder struct {
	Name    string `json:"name"`
	Path    string `json:"path"`             // of the guest
	Folder  string `json:"folder,omitempty"` // of the host
	Managed bool   `json:"managed"`
	Store   string `json:"store,omitempty"` // which managed volume it is, as the volume commands name it
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
	keys      capabilities.Access
}

// Run prints the report.
func (c *inspectCmd) Run(a *app) error {
	conf, ps, err := a.packages(c.bindings, true, c.Package)
	if err != nil {
		return err
	}
	r, err := a.inspect(ps[0], conf.Packages[0])
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

func (a *app) inspect(p *tool.Package, spec config.Package) (*report, error) {
	if err := host.CheckLink(p); err != nil {
		return nil, err
	}
	m := p.Manifest
	r := &report{
		Name: m.Name, Version: m.Version, ABI: m.ABI,
		Digest: p.Digest, ModuleDigest: p.ModuleDigest, DefinitionDigest: p.DefinitionDigest, ModuleBytes: len(p.Module),
		Requests: requestLines(m.Requests), Relaxations: append([]string{}, m.Relaxations.Lines()...),
		Volumes: a.volumeFolders(m, spec), Proved: verify.Prove(m.Requests), Warnings: append([]string{}, m.Warnings...),
	}
	var err error
	if r.Imports, err = imports(p.Module); err != nil {
		return nil, err
	}
	definitions, err := a.definitions(p)
	if err != nil {
		return nil, err
	}
	for _, t := range runtime.ToolsOf(m.Requests, definitions) {
		r.Tools = append(r.Tools, newToolReport(t))
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
	e, err := runtime.New(a.ctx, runtime.Options{
		Store: memstore.New(), Cache: host.Compiled(a.cache), Reserved: []string{a.cache},
		State: filepath.Join(state, "state"), Observer: a.progress.compiling(),
	})
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

func newToolReport(t *runtime.Tool) toolReport {
	r := toolReport{
		Name: t.Definition.Name, Title: t.Definition.Title,
		Declared: t.Definition.Claim, Effective: t.Effective, Enforced: t.Listed,
		Volumes: append([]capabilities.VolumeGrant{}, t.Grant.Volumes...), keys: t.Grant.KV,
	}
	r.Notes = claimNotes(r)
	if names := t.Definition.ClientCapabilities; len(names) > 0 {
		r.Notes = append(r.Notes, "requires a client that declares "+strings.Join(names, ", "))
	}
	return r
}

// volumeFolders returns where each requested volume is kept on the host.
func (a *app) volumeFolders(m tool.Manifest, spec config.Package) []volumeFolder {
	name := m.Name
	if spec.As != "" {
		name = spec.As
	}
	vs := []volumeFolder{}
	for _, v := range m.Requests.Volumes {
		f := volumeFolder{Name: v.Name, Path: v.Path, Folder: spec.Folders[v.Name]}
		if shared := spec.Managed[v.Name]; shared != "" {
			f.Store, f.Managed = shared, true
		} else if f.Folder == "" {
			f.Store, f.Managed = name+"/"+v.Name, true
		} else if abs, err := filepath.Abs(f.Folder); err == nil {
			f.Folder = abs
		}
		vs = append(vs, f)
	}
	return vs
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
		notes = append(notes, "destructiveHint: false is not held against it in this mode, listed as true")
	}
	if t.Effective.Idempotent != t.Enforced.Idempotent {
		notes = append(notes, "idempotentHint: true is not held against each of its calls, listed as false")
	}
	return notes
}
