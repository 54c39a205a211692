package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/bench/peers/report"
)

// Guests of the repository.
const (
	cReactor     = "guests/c/echo"
	cCommand     = "guests/c/echo-command"
	filesReactor = "guests/files"
	filesCommand = "guests/files/command"
	memoryGuest  = "guests/memory"
)

const hello = "hello from the benchmark"

// rows collects the subjects of a table, and why others are not there.
type rows struct {
	subjects []measure.Subject
	all      []report.Row
}

// add adds a subject, or why there is none. Whoever asks for one that should be
// there and is not gets the error.
func (r *rows) add(name string, s measure.Subject, err error) error {
	row := report.Row{Name: name}
	if err != nil {
		m, missing := errors.AsType[*missingError](err)
		if !missing {
			return fmt.Errorf("%s: %w", name, err)
		}
		row.Missing = m.Error()
	} else {
		s.Name = name
		r.subjects = append(r.subjects, s)
	}
	r.all = append(r.all, row)
	return nil
}

// measure lets the subjects take turns and returns the rows.
func (r *rows) measure(ctx context.Context, o measure.Options) ([]report.Row, error) {
	series, err := measure.Run(ctx, r.subjects, o)
	if err != nil {
		return nil, err
	}
	for i := range series {
		for j := range r.all {
			if r.all[j].Name == series[i].Name {
				r.all[j].Series = &series[i]
			}
		}
	}
	return r.all, nil
}

// engineTables compares calls without MCP.
func (l *lab) engineTables(ctx context.Context) ([]*report.Table, error) {
	defer func(n int) { l.closeTo(n) }(len(l.closers))
	folder := l.path("data")
	echo := work{"echo", json.RawMessage(`{"text":"` + hello + `"}`), hello}
	var out []*report.Table
	r := &rows{}
	if err := l.engineRows(ctx, r, echo, folder); err != nil {
		return nil, err
	}
	for _, callers := range l.callers(1, 8) {
		l.say("engine, echo, %d callers: %d subjects", callers, len(r.subjects))
		table, err := r.table(ctx, l.options(callers))
		if err != nil {
			return nil, err
		}
		table.ID, table.Title = report.EngineTable("echo", callers), fmt.Sprintf("The engine's call: echo, callers: %d", callers)
		table.Base = report.Native
		table.Conditions = "No MCP on either side; one process, GOGC " + fmt.Sprint(gogc) + ". CPU is that of the process, with its garbage collector, and of the processes that it started."
		out = append(out, table)
	}
	return out, nil
}

// table measures the rows once.
func (r *rows) table(ctx context.Context, o measure.Options) (*report.Table, error) {
	again := &rows{subjects: r.subjects, all: append([]report.Row(nil), r.all...)}
	all, err := again.measure(ctx, o)
	return &report.Table{Rows: all}, err
}

// engineRows adds all ways to do the work without MCP.
func (l *lab) engineRows(ctx context.Context, r *rows, w work, folder string) error {
	steps := []func() error{
		func() error { return r.add(report.Native, nativeSubject(w), nil) },
		func() error { return l.sandboxRows(ctx, r, w, folder, l.guests(), strategies) },
		func() error { return l.liveRows(ctx, r, w, folder) },
		func() error { return l.extismRows(ctx, r, w, folder, []bool{true, false}) },
		func() error { return l.processRows(ctx, r, w) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// nativeSubject is the tool as a Go function of the same process.
func nativeSubject(w work) measure.Subject {
	return measure.Subject{CPU: measure.Self, Call: func(_ context.Context, _, n int) error {
		var in struct{ Text string }
		if err := json.Unmarshal(w.arguments, &in); err != nil {
			return err
		}
		content, err := json.Marshal(map[string]string{"type": "text", "text": in.Text})
		if err != nil {
			return err
		}
		return w.checkContent([]json.RawMessage{content}, n)
	}}
}

// guests are the tools in the sandbox: what a row is called before its strategy,
// and the folder of the package.
func (l *lab) guests() []guest {
	return []guest{
		{"C reactor", l.shipped(cReactor)},
		{"C command", l.shipped(cCommand)},
		{"Go reactor", l.shipped(filesReactor)},
		{"Go command", l.shipped(filesCommand)},
		{"QuickJS, script as command", l.script(javascript)},
		{"CPython, script as command", l.script(python)},
	}
}

// reactors are the guests that growth is measured with.
func (l *lab) reactors() []guest {
	return []guest{{"C reactor", l.shipped(cReactor)}, {"Go reactor", l.shipped(filesReactor)}}
}

type guest struct {
	name string
	ship func(context.Context) (dir string, err error)
}

func (l *lab) shipped(dir string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return l.ship(ctx, dir) }
}

// sandboxRows adds the guests, by each strategy of the engine.
func (l *lab) sandboxRows(ctx context.Context, r *rows, w work, folder string, guests []guest, by []strategyName) error {
	for _, s := range by {
		box, open := l.openSandbox(ctx, s.strategy)
		for _, g := range guests {
			err := open
			var subject measure.Subject
			if err == nil {
				subject, err = l.guestSubject(ctx, box, g, w, folder)
			}
			if err := r.add(g.name+s.suffix, subject, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lab) guestSubject(ctx context.Context, box *sandbox, g guest, w work, folder string) (measure.Subject, error) {
	dir, err := g.ship(ctx)
	if err != nil {
		return measure.Subject{}, err
	}
	p, err := box.load(ctx, dir, folder)
	if err != nil {
		return measure.Subject{}, err
	}
	if _, ok := p.Tool(w.tool); !ok {
		return measure.Subject{}, &missingError{g.name, "it has no tool " + w.tool}
	}
	if err := box.holds(p); err != nil {
		return measure.Subject{}, err
	}
	return sandboxed(g.name, p, w), nil
}

// liveRows adds reactors whose one instance is kept: as they are, and rewritten as
// the engine does it, which is what interruption costs.
func (l *lab) liveRows(ctx context.Context, r *rows, w work, folder string) error {
	for _, g := range []struct {
		name    string
		dir     string
		metered bool
	}{
		{report.CLive, cReactor, false},
		{report.CMetered, cReactor, true},
		{report.GoLive, filesReactor, false},
		{report.GoMetered, filesReactor, true},
	} {
		var subject measure.Subject
		v, err := l.openLivePackage(ctx, g.dir, folder, g.metered)
		if err == nil {
			subject = v.subject(g.name, w)
		}
		if err := r.add(g.name, subject, err); err != nil {
			return err
		}
	}
	return nil
}

// extismRows adds Extism, each plug-in with a live instance and a new one, with
// and without what lets it be interrupted.
func (l *lab) extismRows(ctx context.Context, r *rows, w work, folder string, instances []bool) error {
	plugins := []struct {
		name  string
		wasi  bool
		build func(context.Context) (string, error)
	}{{"Extism C", true, l.cPlugin}, {"Extism Go", true, l.goPlugin}}
	for _, p := range plugins {
		file, built := p.build(ctx)
		for _, reused := range instances {
			for _, timeout := range []time.Duration{0, 5 * time.Second} {
				name := p.name + map[bool]string{true: ", reused", false: ", new instance"}[reused]
				if timeout > 0 {
					name += ", with time-out"
				}
				var subject measure.Subject
				err := built
				if err == nil {
					var opened *plugin
					if opened, err = l.openPlugin(ctx, pluginOptions{file, p.wasi, folder, reused, timeout}); err == nil {
						subject = opened.subject(name, w)
					}
				}
				if err := r.add(name, subject, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// processRows adds a process for each call.
func (l *lab) processRows(ctx context.Context, r *rows, w work) error {
	bwrap, noBwrap := bubblewrap()
	for _, p := range []struct {
		plain, wrapped string
		build          func(context.Context) (string, error)
	}{{report.ProcessC, report.BwrapC, l.cProcess}, {report.ProcessGo, report.BwrapGo, l.goProcess}} {
		program, err := p.build(ctx)
		if err := r.add(p.plain, spawned(p.plain, w, program), err); err != nil {
			return err
		}
		if err == nil {
			err = noBwrap
		}
		if err := r.add(p.wrapped, spawned(p.wrapped, w, wrapped(bwrap, program)...), err); err != nil {
			return err
		}
	}
	return nil
}

// source returns a path in the folder of this command.
func (l *lab) source(elements ...string) string {
	return filepath.Join(append([]string{l.root, "bench", "peers"}, elements...)...)
}

// cSources are the files of the guest in C that are the same in every shape of it.
var cSources = []string{"sdk/json.c", "sdk/answer.c", "echo/echo.c"}

// cPlugin builds the guest in C as a plug-in of Extism, as guests/c/build.sh builds
// it for sandboxd.
func (l *lab) cPlugin(ctx context.Context) (string, error) {
	clang, err := wasmCompiler()
	if err != nil {
		return "", err
	}
	out := l.path("bin", "plugin-c.wasm")
	args := []string{
		"--target=wasm32-wasi", "-mexec-model=reactor", "-std=c17", "-O2", "-I", "sdk",
		"-Wl,--strip-all,--stack-first,-z,stack-size=65536", "-o", out, l.source("c", "plugin.c"),
	}
	_, err = l.run(ctx, filepath.Join(l.root, "guests", "c"), nil, clang, append(args, cSources...)...)
	return out, err
}

// goPlugin builds the plug-in in Go for Extism.
func (l *lab) goPlugin(ctx context.Context) (string, error) {
	return l.goBuild(ctx, l.source(), "./extismgo", "plugin-go.wasm", []string{"GOOS=wasip1", "GOARCH=wasm"}, "-buildmode=c-shared", "-trimpath")
}

// cProcess builds the guest in C for this machine, without shared libraries.
func (l *lab) cProcess(ctx context.Context) (string, error) {
	cc, err := compiler()
	if err != nil {
		return "", err
	}
	out := l.path("bin", "process-c")
	args := append([]string{"-std=gnu17", "-O2", "-static", "-o", out, "sdk/command.c"}, cSources...)
	_, err = l.run(ctx, filepath.Join(l.root, "guests", "c"), nil, cc, args...)
	return out, err
}

// goProcess builds the guest in Go for this machine.
func (l *lab) goProcess(ctx context.Context) (string, error) {
	return l.goBuild(ctx, l.root, "./"+filesReactor, "process-"+strings.ReplaceAll(filesReactor, "/", "-"), nil)
}
