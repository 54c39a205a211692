package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// language is one whose programs are scripts: the package of echo in it is made of
// the script of this folder and of an interpreter that is not in the repository.
type language struct {
	name   string   // the folder in scripts
	module string   // the interpreter, in the folder of interpreters
	files  []string // of guests, that the script needs beside it
}

var (
	javascript = language{name: "javascript", module: "qjs.wasm"}
	python     = language{name: "python", module: "python.wasm", files: []string{"python/script/sandboxd.py"}}
)

// script returns how to make the package of echo in a language.
func (l *lab) script(g language) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		folder, err := l.interpreters(ctx)
		if err != nil {
			return "", err
		}
		module, err := os.ReadFile(filepath.Join(folder, g.module))
		if err != nil {
			return "", err
		}
		dir := l.path("packages", g.name+"-echo")
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
		if err := os.CopyFS(dir, os.DirFS(l.source("scripts", g.name))); err != nil {
			return "", err
		}
		files := map[string]string{g.module: string(module)}
		for _, name := range g.files {
			b, err := os.ReadFile(filepath.Join(l.root, "guests", filepath.FromSlash(name)))
			if err != nil {
				return "", err
			}
			files[filepath.Join("script", filepath.Base(name))] = string(b)
		}
		return dir, writeFiles(dir, files)
	}
}

// interpreters returns the folder that guests/interpreters.sh fills. A short run
// does without unless it was named.
func (l *lab) interpreters(ctx context.Context) (string, error) {
	install := filepath.Join(l.root, "guests", "interpreters.sh")
	if _, err := os.Stat(install); errors.Is(err, os.ErrNotExist) {
		return "", &missingError{"guests/interpreters.sh", "this tree has no interpreters"}
	}
	folder := l.scripts
	if folder == "" {
		if l.short {
			return "", &missingError{"an interpreter", "name the folder that guests/interpreters.sh filled with -interpreters"}
		}
		folder = l.path("interpreters")
	}
	_, err := l.run(ctx, l.root, nil, install, folder)
	return folder, err
}
