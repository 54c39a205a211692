package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/internal/host"
)

type buildCmd struct {
	Dir string `arg:"" help:"Folder of the package."`
}

func (buildCmd) Help() string {
	return `The module goes to the cache, never into the folder. A package that has its module already is read and checked.

Examples:

    sandboxd build guests/notes`
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
	if p.Manifest.Source != nil {
		if path, err = builtModule(a.cache, p.Module); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "module  %s\nsize    %d\ndigest  %s\n", path, len(p.Module), p.ModuleDigest)
	return err
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
