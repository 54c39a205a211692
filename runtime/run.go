package runtime

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// RunSpec is one run of a WASI program. Limits are the caller's to fill in.
type RunSpec struct {
	Name           string
	Module         []byte
	Args, Env      []string // Args after the program's name; Env as "KEY=value"
	Dirs           []RunDir
	Stdin          io.Reader // may block
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
	defer func() {
		if fault := recover(); fault != nil {
			err = &HostFault{fmt.Errorf("%w: %v", errPanic, fault)}
		}
	}()
	ctx, done, err := e.running.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	opened, grant, err := e.runGrant(s)
	defer func() {
		for _, d := range opened {
			err = errors.Join(err, e.folders.release(d))
		}
	}()
	if err != nil {
		return 0, err
	}
	var stores []tx.Volume
	for i, v := range grant.Volumes {
		stores = append(stores, tx.Volume{Name: v.Name, Path: v.Path, Store: opened[i].dir})
	}
	f, release, err := e.program(ctx, s)
	if err != nil {
		return 0, err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limits.Timeout, &TimeoutError{s.Limits.Timeout})
	defer cancel()
	x := newExecution(ctx, world{volumes: stores, cpus: e.cpus}, capabilities.NewLedger(grant, capabilities.Notify{}), s.Limits)
	defer x.close()
	x.clock.waits = true
	outcome, err := x.program(ctx, f, s)
	if outcome == OK {
		err = x.save(ctx)
	}
	if status, ok := errors.AsType[*ExitError](err); ok {
		return status.Code, nil
	}
	return 0, err
}

// program compiles the module; release frees it.
func (e *Engine) program(ctx context.Context, s RunSpec) (f *factory, release func(), err error) {
	fail := func(phase string, err error) (*factory, func(), error) {
		return nil, nil, &LoadError{Package: s.Name, Phase: phase, Err: err}
	}
	module, shape, err := guard(s.Module, s.Limits)
	if err != nil {
		return fail("module", err)
	}
	if err := CheckLink(s.Module, tool.Command); err != nil {
		return fail("link", err)
	}
	compiled, err := e.compile(ctx, s.Name, module)
	if err != nil {
		return fail("compile", err)
	}
	f = &factory{engine: e, pkg: s.Name, module: compiled, shape: shape, limits: s.Limits}
	return f, func() { compiled.Close(context.WithoutCancel(ctx)) }, nil
}

// runGrant opens the folders and returns them, those of a failure too, with the
// authority over them.
func (e *Engine) runGrant(s RunSpec) (opened []*folder, g capabilities.Grant, err error) {
	var policy capabilities.Policy
	for i, d := range s.Dirs {
		access := capabilities.WriteAccess
		if d.ReadOnly {
			access = capabilities.ReadAccess
		}
		if err := e.checkRunDir(s.Dirs[:i], d); err != nil {
			return opened, capabilities.Grant{}, fmt.Errorf("%w %s: %w", ErrVolume, d.Host, err)
		}
		dir, err := e.folders.acquire(d.Host, volume.OpenDir)
		if err != nil {
			return opened, capabilities.Grant{}, fmt.Errorf("%w %s: %w", ErrVolume, d.Host, err)
		}
		opened = append(opened, dir)
		name := fmt.Sprintf("dir%d", i)
		policy.Volumes = append(policy.Volumes, capabilities.VolumeGrant{Name: name, Path: d.Guest, Access: access})
	}
	return opened, capabilities.Derive(capabilities.Claim{}.Effective(), policy), nil
}

// checkRunDir refuses a folder that overlaps one of the host's own, or one that
// was given before.
func (e *Engine) checkRunDir(before []RunDir, d RunDir) error {
	if err := e.checkFolder(d.Host); err != nil {
		return err
	}
	for _, b := range before {
		if overlap(b.Host, d.Host) {
			return fmt.Errorf("overlaps %s; give each folder once", b.Host)
		}
	}
	return nil
}

// save commits what the program did to its folders.
func (x *execution) save(ctx context.Context) error {
	prepared, err := x.tx.Prepare(ctx)
	if err != nil {
		_, err = x.unprepared(ctx, err)
		return err
	}
	_, _, err = x.commit(context.WithoutCancel(ctx), prepared, store.Commit{})
	return err
}

// program runs the module once and says how it ended.
func (x *execution) program(ctx context.Context, f *factory, s RunSpec) (Outcome, error) {
	process := x.process(wasi.Options{
		Args: append([]string{s.Name}, s.Args...), Env: s.Env,
		Stdin: s.Stdin, StdinBlocks: true, Stdout: s.Stdout, Stderr: s.Stderr,
	})
	defer process.Close()
	if err := x.seat.Take(ctx); err != nil {
		return Timeout, err
	}
	defer x.seat.Leave()
	i := &Instance{name: crand.Text()}
	defer f.engine.discard(context.WithoutCancel(ctx), i)
	i.slot.Store(&served{process: process, meter: hostengine.NewMeter(s.Limits.Fuel)})
	err := f.instantiate(ctx, i, nil)
	if err == nil {
		err = i.module.ExportedFunction("_start").CallWithStack(ctx, nil)
	}
	if stop := process.Stop(); stop != nil {
		err = stop
	}
	return x.ended(ctx, err, i.memory != nil && i.memory.Refused())
}
