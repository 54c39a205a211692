package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// RunSpec is one run of a WASI program. Limits are the caller's to fill in.
type RunSpec struct {
	Name           string
	Module         []byte
	Args, Env      []string // Args after the program's name; Env as "KEY=value"
	Dirs           []RunDir
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Limits         tool.Limits
}

// RunDir is a host folder at a path of the guest.
type RunDir struct {
	Host, Guest string
	ReadOnly    bool
}

// Run runs a WASI program (abi command) under the sandbox of a tool that
// declares nothing: folders as given, no network. What it did to the folders
// is committed when it exits with status 0, and dropped otherwise. It returns
// the program's exit status; err is set when the program was stopped or could
// not run, or when its changes could not be committed.
func (e *Engine) Run(ctx context.Context, s RunSpec) (exit uint32, err error) {
	ctx, done, err := e.running.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	instances, err := e.program(ctx, s)
	if err != nil {
		return 0, err
	}
	stores, grant, err := e.runGrant(s)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Timeout)
	defer cancel()
	clock := callClock{time.Now()}
	t := tx.Begin(stores, volume.Options{
		Budget: &volume.Budget{Bytes: s.Limits.Writes, Files: s.Limits.Files},
		Now:    clock.now,
	})
	defer t.Rollback()
	exit, err = runProgram(ctx, instances, s, t, stores, clock, capabilities.NewLedger(grant, capabilities.Notify{}))
	if err != nil || exit != 0 {
		return exit, err
	}
	prepared, err := t.Prepare(ctx)
	if err == nil {
		err = t.Commit(context.WithoutCancel(ctx), prepared)
	}
	return exit, err
}

func (e *Engine) program(ctx context.Context, s RunSpec) (*newPerCall, error) {
	fail := func(phase string, err error) (*newPerCall, error) {
		return nil, &LoadError{Package: s.Name, Phase: phase, Err: err}
	}
	module, err := guard(s.Module, s.Limits)
	if err != nil {
		return fail("module", err)
	}
	var compiled wazero.CompiledModule
	if compiled, err = e.compile(ctx, s.Name, module); err != nil {
		return fail("compile", err)
	}
	if err := e.linkable(compiled, tool.Command); err != nil {
		return fail("link", err)
	}
	return &newPerCall{engine: e, pkg: s.Name, module: compiled, memory: uint64(s.Limits.Memory)}, nil
}

func (e *Engine) runGrant(s RunSpec) ([]tx.Volume, capabilities.Grant, error) {
	var stores []tx.Volume
	var policy capabilities.Policy
	for i, d := range s.Dirs {
		dir, err := e.folders.get(d.Host, volume.OpenDir)
		if err != nil {
			return nil, capabilities.Grant{}, fmt.Errorf("--dir %s: %w", d.Host, err)
		}
		name := fmt.Sprintf("dir%d", i)
		access := capabilities.WriteAccess
		if d.ReadOnly {
			access = capabilities.ReadAccess
		}
		stores = append(stores, tx.Volume{Name: name, Path: d.Guest, Store: dir})
		policy.Volumes = append(policy.Volumes, capabilities.VolumeGrant{Name: name, Path: d.Guest, Access: access})
	}
	return stores, capabilities.Derive(capabilities.Claim{}.Effective(), policy), nil
}

func runProgram(ctx context.Context, n *newPerCall, s RunSpec, t *tx.Tx, stores []tx.Volume, clock callClock, l *capabilities.Ledger) (uint32, error) {
	var mounts []*files.Volume
	for _, v := range stores {
		mounts = append(mounts, files.New(v.Name, v.Path, t.Overlay(v.Name), l))
	}
	scratch, overlay := newScratch(clock, l)
	defer overlay.Close()
	process := wasi.NewProcess(wasi.Options{
		Args: append([]string{s.Name}, s.Args...), Env: s.Env,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Volumes: append(mounts, scratch),
		Random:  newRandom(), Now: clock.now, Monotonic: clock.monotonic,
		Ledger: l,
	})
	defer process.Close()
	i, err := n.Get(ctx, process)
	defer n.Put(context.WithoutCancel(ctx), i, Discard)
	if err == nil {
		_, err = i.module.ExportedFunction("_start").Call(ctx)
	}
	return runStatus(ctx, process, i, err)
}

// runStatus turns the end of a program into its exit status, or the error that
// stopped it.
func runStatus(ctx context.Context, process *wasi.Process, i *instance, err error) (uint32, error) {
	if stop := process.Stop(); stop != nil {
		err = stop
	}
	var exit *wasi.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.Code, nil
	case asLimit(err) != nil:
		return 0, asLimit(err)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case i.memory.refused:
		return 0, &LimitError{Limit: "memory", Err: err}
	}
	return 0, &TrapError{err}
}
