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
	return `No tool is called. A module that describes itself is asked to. Start-up code of reactors, and of programs that say
reseeds, runs with nothing granted: what a call gets depends on it.

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
	Instances        instances      `json:"instances"`
	Tools            []toolReport   `json:"tools"`
	Requests         []string       `json:"requests"`
	Relaxations      []string       `json:"relaxations"` // as the configuration names them
	Volumes          []volumeFolder `json:"volumes"`
	Imports          []importGroup  `json:"imports"`
	Proved           verify.Proof   `json:"proved"`
	Flows            []flow         `json:"flows"`
	Warnings         []string       `json:"warnings"`
}

// instances says what the package's instances are when a call gets them: known
// from the module alone, unless the package had to be loaded.
type instances struct {
	Kind   runtime.Kind   `json:"kind"`
	Reason runtime.Reason `json:"reason,omitempty"` // it is no other kind
	Detail string         `json:"detail,omitempty"`
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
	r, err := a.inspect(ps[0], conf)
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

func (a *app) inspect(p *tool.Package, conf *config.Config) (*report, error) {
	if err := host.CheckLink(p); err != nil {
		return nil, err
	}
	m := p.Manifest
	r := &report{
		Name: m.Name, Version: m.Version, ABI: m.ABI,
		Digest: p.Digest, ModuleDigest: p.ModuleDigest, DefinitionDigest: p.DefinitionDigest, ModuleBytes: len(p.Module),
		Requests: requestLines(m.Requests), Relaxations: append([]string{}, m.Relaxations.Lines()...),
		Volumes: a.volumeFolders(m, conf.Packages[0]), Proved: verify.Prove(m.Requests), Warnings: append([]string{}, m.Warnings...),
	}
	prospect, err := runtime.ProspectOf(p)
	if err != nil {
		return nil, err
	}
	r.Instances = instances(prospect)
	if r.Imports, err = imports(p.Module); err != nil {
		return nil, err
	}
	definitions, err := a.describe(p, &r.Instances, conf.WasmOpt)
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
// for them.
func (a *app) definitions(p *tool.Package) ([]tool.Definition, error) {
	if len(p.Manifest.Tools) > 0 {
		return p.Manifest.Tools, nil
	}
	return a.describe(p, &instances{}, "")
}

// describe returns the tools that the manifest defines, or asks the module for them:
// an engine of its own loads it, with a state folder that nothing is kept in. What that
// shows of its instances is set. Reactors, and programs whose calls may begin at their
// first read of standard input, are loaded, too, where only that tells what they are.
func (a *app) describe(p *tool.Package, is *instances, wasmOpt string) (_ []tool.Definition, err error) {
	if len(p.Manifest.Tools) > 0 && !p.Manifest.Reseeds && is.Kind != runtime.KindInitialized {
		return p.Manifest.Tools, nil
	}
	state, err := os.MkdirTemp("", "sandboxd-inspect-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	e, err := runtime.New(a.ctx, runtime.Options{
		Store: memstore.New(), Cache: host.Compiled(a.cache), Reserved: []string{a.cache},
		State: filepath.Join(state, "state"), Observer: a.progress.compiling(), Rewrite: host.Rewriting(wasmOpt, a.cache),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(a.detached())) }()
	loaded, err := e.Load(a.ctx, p, runtime.Binding{})
	if err != nil {
		return nil, err
	}
	if kind, why := loaded.Kind(); kind != is.Kind || why != is.Reason {
		*is = instances{Kind: kind, Reason: why}
	} else if why == "" {
		is.Detail = ""
	}
	if is.Reason == runtime.ReasonRandom {
		is.Detail = "its start-up code draws random numbers, and it exports no sandboxd_reseed that works"
	}
	if no, ok := errors.AsType[*runtime.InputError](loaded.Because()); ok {
		is.Detail = no.Err.Error()
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
