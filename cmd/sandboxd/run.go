package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	e, err := runtime.New(a.ctx, runtime.Options{Cache: a.compiled(), State: a.state, Observer: a.compiling()})
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
	if s.Module, err = os.ReadFile(c.Module); err != nil {
		return s, fmt.Errorf("module: %w", err)
	}
	return s, nil
}

func parseDir(s string) (runtime.RunDir, error) {
	parts := strings.Split(s, "::")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || !strings.HasPrefix(parts[1], "/") || len(parts) == 3 && parts[2] != "ro" {
		return runtime.RunDir{}, fmt.Errorf("--dir %s: want HOST::GUEST or HOST::GUEST::ro, with GUEST an absolute path", s)
	}
	if info, err := os.Stat(parts[0]); err != nil || !info.IsDir() {
		return runtime.RunDir{}, fmt.Errorf("--dir %s: folder %s: not found", s, parts[0])
	}
	return runtime.RunDir{Host: parts[0], Guest: parts[1], ReadOnly: len(parts) == 3}, nil
}
