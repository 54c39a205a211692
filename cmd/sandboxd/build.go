package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/tool"
)

type buildCmd struct {
	Dir string `arg:"" help:"Folder of the package."`
	Out string `placeholder:"DIR" help:"Write the package to the folder DIR, with the module in place of its source: it needs no toolchain, and no approval where this one has it."`
}

func (buildCmd) Help() string {
	return `The module goes to the cache, never into the folder; with --out also into another folder, with a manifest that names it, which can be copied to any machine. A package that has its module already is read and checked.

Examples:

    sandboxd build guests/notes
    sandboxd build guests/notes --out notes-1.0.0`
}

// Run builds a package and prints where its module is, its size and digest.
func (c *buildCmd) Run(a *app) error {
	p, err := a.source(c.Dir)
	if err != nil {
		return err
	}
	if err := host.CheckLink(p); err != nil {
		return err
	}
	path := filepath.Join(p.Dir, p.Manifest.Module)
	switch {
	case c.Out != "":
		path, err = ship(p, c.Out)
	case p.Manifest.Source != nil:
		path, err = builtModule(a.cache, p.Module)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "module  %s\nsize    %d\ndigest  %s\n", path, len(p.Module), p.ModuleDigest)
	return err
}

// The files of a package that was built for other machines.
const (
	shippedModule   = "module.wasm"
	shippedManifest = "tool.yaml"
)

// ship writes a package with its module in place of its source to a folder, and
// returns where the module is there.
func ship(p *tool.Package, dir string) (string, error) {
	fault := func(err error) (string, error) { return "", fmt.Errorf("--out %s: %w", dir, err) }
	if p.Manifest.Source == nil {
		return fault(errors.New("the package has no source to build; copy its folder"))
	}
	manifest, err := p.Prebuilt(shippedModule)
	if err != nil {
		return fault(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault(err)
	}
	if err := differs(p, dir); err != nil {
		return fault(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault(err)
	}
	for _, e := range entries {
		if e.Name() != shippedModule && e.Name() != shippedManifest && (p.Files == nil || e.Name() != topOf(p)) {
			return fault(fmt.Errorf("has %s in it; name a new folder", e.Name()))
		}
	}
	// In this order a load in between finds no package or the new one.
	err = os.Remove(filepath.Join(dir, shippedManifest))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(err)
	}
	if err := shipFiles(p, dir); err != nil {
		return fault(err)
	}
	module := filepath.Join(dir, shippedModule)
	if err := os.WriteFile(module, p.Module, 0o644); err != nil {
		return fault(err)
	}
	if err := os.WriteFile(filepath.Join(dir, shippedManifest), manifest, 0o644); err != nil {
		return fault(err)
	}
	shipped, err := tool.Load(dir, nil)
	if err != nil {
		return fault(err)
	}
	if shipped.Digest != p.Digest {
		return fault(errors.New("somebody else writes there; name a new folder"))
	}
	return module, nil
}

// topOf returns the outermost folder of the package's files.
func topOf(p *tool.Package) string {
	top, _, _ := strings.Cut(p.Manifest.Files, "/")
	return top
}

// shipFiles writes the package's own files to the folder of a package.
func shipFiles(p *tool.Package, dir string) error {
	if p.Files == nil {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(dir, topOf(p))); err != nil {
		return err
	}
	for name, content := range p.Files {
		to := filepath.Join(dir, filepath.FromSlash(p.Manifest.Files), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// differs refuses a folder of another package, and the package's own.
func differs(p *tool.Package, dir string) error {
	out, err := os.Stat(dir)
	if err != nil {
		return err
	}
	own, err := os.Stat(p.Dir)
	if err != nil {
		return err
	}
	if os.SameFile(out, own) {
		return errors.New("the folder of the source; name another")
	}
	old, err := tool.Load(dir, nil)
	if err == nil && old.Manifest.Name != p.Manifest.Name || errors.Is(err, tool.ErrNoBuilder) {
		return errors.New("has another package in it; name a new folder")
	}
	return nil
}

// builtModule finds the file of a module that was just built or was in the
// cache: it is named by its source, not by its content.
func builtModule(cache string, module []byte) (string, error) {
	files, err := filepath.Glob(filepath.Join(cache, "build", "*.wasm"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() != int64(len(module)) {
			continue
		}
		if b, err := os.ReadFile(f); err == nil && bytes.Equal(b, module) {
			return f, nil
		}
	}
	return "", errors.New("module: not in the cache any more; build again")
}
