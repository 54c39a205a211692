package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

type runCmd struct {
	Module  string        `arg:"" placeholder:"MODULE.wasm" help:"The program, a WASI preview 1 module."`
	Args    []string      `arg:"" optional:"" help:"Its arguments, after --."`
	Dir     []string      `sep:"none" placeholder:"HOST::GUEST[::ro]" help:"Give it the host folder HOST at its path GUEST, only to read with ::ro. May be repeated."`
	Env     []string      `sep:"none" placeholder:"K=V" help:"Set an environment variable. May be repeated."`
	Timeout time.Duration `default:"10m" help:"Stop it after this time."`
}

func (runCmd) Help() string {
	return `The program gets the folders and variables that are named here and nothing else: no network, no other file.
What it changed in the folders is saved when it exits with status 0, and dropped otherwise. The exit status is its
own; 1 when it could not run, 6 when it ran into a limit or out of time.

Examples:

    sandboxd run tool.wasm --dir ./data::/data::ro -- --verbose /data/in.txt`
}

// runLimits are those of a program that a person started: as high as a
// package's can be.
func (c *runCmd) limits() tool.Limits {
	return tool.Limits{
		Memory:  1 << 30,
		Timeout: c.Timeout,
		Output:  64 << 20,
		Writes:  1 << 30,
		Files:   100_000,
	}
}

// Run runs the program.
func (c *runCmd) Run(a *app) (err error) {
	spec, err := c.spec(a)
	if err != nil {
		return err
	}
	e, err := runtime.New(a.ctx, runtime.Options{Cache: host.Compiled(a.cache), Reserved: []string{a.cache}, State: a.state, Observer: a.progress.compiling()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(a.detached())) }()
	exit, err := e.Run(a.ctx, spec)
	if _, ok := errors.AsType[*runtime.LimitError](err); ok || errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(a.stderr, "sandboxd: %s: %v; nothing saved\n", spec.Name, err)
		return status(exitLimit)
	}
	if err != nil {
		return err
	}
	return exitOf(exit)
}

// exitOf turns a guest's exit status into the program's. Systems keep the low
// eight bits, which must not make a failure a success.
func exitOf(code uint32) error {
	switch {
	case code == 0:
		return nil
	case code&0xFF == 0:
		return status(1)
	}
	return status(code & 0xFF)
}

func (c *runCmd) spec(a *app) (runtime.RunSpec, error) {
	s := runtime.RunSpec{
		Name: strings.TrimSuffix(filepath.Base(c.Module), ".wasm"), Args: c.Args, Env: c.Env,
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Limits: c.limits(),
	}
	for _, e := range c.Env {
		if k, _, ok := strings.Cut(e, "="); !ok || k == "" {
			return s, fmt.Errorf("--env %s: want K=V", e)
		}
	}
	for _, d := range c.Dir {
		dir, err := parseDir(d)
		if err != nil {
			return s, err
		}
		s.Dirs = append(s.Dirs, dir)
	}
	if c.Timeout <= 0 {
		return s, fmt.Errorf("--timeout %s: want a time above 0, such as 30s", c.Timeout)
	}
	var err error
	s.Module, err = c.module()
	return s, err
}

// module reads the program, and says of what is none how it becomes one.
func (c *runCmd) module() ([]byte, error) {
	info, err := os.Stat(c.Module)
	switch {
	case err != nil:
		return nil, fmt.Errorf("module: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("module %s: a folder; name a .wasm file, or call a tool of the package: sandboxd call -p %s TOOL", c.Module, c.Module)
	case filepath.Ext(c.Module) == ".go":
		return nil, fmt.Errorf("module %s: Go source; build it first: GOOS=wasip1 GOARCH=wasm go build -o %s.wasm %s",
			c.Module, strings.TrimSuffix(c.Module, ".go"), c.Module)
	}
	b, err := os.ReadFile(c.Module)
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}
	if !bytes.HasPrefix(b, []byte("\x00asm")) {
		return nil, fmt.Errorf("module %s: not WebAssembly; build the program for WASI preview 1", c.Module)
	}
	return b, nil
}

func parseDir(s string) (runtime.RunDir, error) {
	parts := strings.Split(s, "::")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || !strings.HasPrefix(parts[1], "/") || len(parts) == 3 && parts[2] != "ro" {
		return runtime.RunDir{}, fmt.Errorf("--dir %s: want HOST::GUEST or HOST::GUEST::ro, with GUEST an absolute path", s)
	}
	if info, err := os.Stat(parts[0]); err != nil || !info.IsDir() {
		return runtime.RunDir{}, fmt.Errorf("--dir %s: folder %s: not found; make it first", s, parts[0])
	}
	return runtime.RunDir{Host: parts[0], Guest: parts[1], ReadOnly: len(parts) == 3}, nil
}
