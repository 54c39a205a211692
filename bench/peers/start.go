package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/bench/peers/report"
	"github.com/sandboxd/sandboxd/tool"
)

// Rows of the table of starts that no goal is about.
const (
	nodeMemory     = "Node server-memory, stdio"
	nodeEverything = "Node server-everything, stdio"
)

// startTable compares starts: from the start of the process to the first answer
// to tools/list. It returns what the servers take while they do nothing, too.
func (l *lab) startTable(ctx context.Context) (*report.Table, []report.MemoryRow, error) {
	folder := l.path("data")
	files, err := l.filesSpecs(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	specs := append(files, l.nodeFiles(ctx, folder), l.planned(nodeMemory, nil, func() (serverSpec, error) {
		return l.nodeSpec(ctx, nodeMemory, "server-memory", []string{"MEMORY_FILE_PATH=" + l.path("graph-start.jsonl")})
	}), l.planned(nodeEverything, nil, func() (serverSpec, error) {
		return l.nodeSpec(ctx, nodeEverything, "server-everything", nil, "stdio")
	}), l.twenty(ctx))
	r := &rows{}
	var idle []report.MemoryRow
	for _, s := range specs {
		if err := r.add(s.row, l.startSubject(s.spec), s.err); err != nil {
			return nil, nil, err
		}
		row := report.MemoryRow{Name: s.row}
		if s.err != nil {
			row.Missing = s.err.Error()
		} else if row.Memory, err = l.idle(ctx, s.spec); err != nil {
			return nil, nil, err
		}
		idle = append(idle, row)
	}
	l.say("starts: %d servers", len(r.subjects))
	o := measure.Options{Rounds: l.rounds, Callers: 1, Least: 1}
	t, err := r.table(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	t.ID, t.Title, t.Base = report.StartTable, "Start to first tools/list", report.SandboxdStdio
	t.Conditions = "From the start of the process to the answer to the first tools/list, protocol version " + report.Protocol + ", one start a round; files and compiled modules are in the page cache and in the disk cache. CPU is that of the server until then."
	return t, idle, nil
}

// startSubject returns the subject of one start for each call.
func (l *lab) startSubject(s serverSpec) measure.Subject {
	var took, used time.Duration
	return measure.Subject{
		CPU:  func() (time.Duration, error) { return used, nil },
		Took: func(int) time.Duration { return took },
		Call: func(ctx context.Context, _, _ int) error {
			began := time.Now()
			running, err := l.listed(ctx, s)
			took = time.Since(began)
			if err != nil {
				return err
			}
			cpu, err := running.cpu()
			used += cpu
			return errors.Join(err, running.close())
		},
	}
}

// listed starts a server and asks it for its tools.
func (l *lab) listed(ctx context.Context, s serverSpec) (*server, error) {
	running, err := l.start(ctx, s, report.Protocol)
	if err != nil {
		return nil, err
	}
	tools, err := running.session.ListTools(ctx, nil)
	if err == nil && len(tools.Tools) == 0 {
		err = fmt.Errorf("%s: no tools", s.row)
	}
	if err != nil {
		return nil, errors.Join(err, running.close())
	}
	return running, nil
}

// idle returns what a server takes a second after it has listed its tools.
func (l *lab) idle(ctx context.Context, s serverSpec) (measure.Memory, error) {
	running, err := l.listed(ctx, s)
	if err != nil {
		return measure.Memory{}, err
	}
	time.Sleep(time.Second)
	m, err := measure.Resident(running.command.Process.Pid)
	return m, errors.Join(err, running.close())
}

// twenty returns sandboxd with twenty packages that were approved, whose modules
// differ.
func (l *lab) twenty(ctx context.Context) started {
	if l.short {
		return started{row: report.Sandboxd20, err: &missingError{report.Sandboxd20, "a short run leaves it out"}}
	}
	return l.planned(report.Sandboxd20, nil, func() (serverSpec, error) {
		dir, err := l.ship(ctx, filesReactor)
		if err != nil {
			return serverSpec{}, err
		}
		dirs, err := l.variants(dir, 20)
		if err != nil {
			return serverSpec{}, err
		}
		return l.served(ctx, report.Sandboxd20, "twenty", dirs)
	})
}

// variants returns copies of a package whose names and modules differ: each has a
// custom section of its own.
func (l *lab) variants(dir string, n int) (dirs []string, err error) {
	p, err := tool.Load(dir, nil)
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "tool.yaml"))
	if err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("%s-%03d", p.Manifest.Name, i)
		copied := l.path("packages", name)
		// Core specification, binary format, "Custom section": an identifier of 0, the
		// length, and a name with its length.
		custom := append([]byte{0, byte(len(name) + 1), byte(len(name))}, name...)
		text := strings.Replace(string(manifest), "\nname: "+p.Manifest.Name+"\n", "\nname: "+name+"\n", 1)
		if err := writeFiles(copied, map[string]string{"tool.yaml": text, p.Manifest.Module: string(p.Module) + string(custom)}); err != nil {
			return nil, err
		}
		dirs = append(dirs, copied)
	}
	return dirs, nil
}

// served returns sandboxd over stdio with packages that it trusts and whose modules
// it has compiled before.
func (l *lab) served(ctx context.Context, row, state string, dirs []string) (serverSpec, error) {
	bin, err := l.sandboxd(ctx)
	if err != nil {
		return serverSpec{}, err
	}
	var conf strings.Builder
	conf.WriteString("packages:\n")
	for _, dir := range dirs {
		// Under another name than its own, so that its tools are told from the others'.
		fmt.Fprintf(&conf, "  - {source: %q, as: %q}\n", dir, "as-"+filepath.Base(dir))
	}
	file := l.path("state", state+".yaml")
	if err := writeFiles(l.path("state"), map[string]string{state + ".yaml": conf.String()}); err != nil {
		return serverSpec{}, err
	}
	s := serverSpec{row: row, root: guestRoot, echoKey: "text"}
	s.command = append(append([]string{bin, "--config", file}, l.state(state)...), "serve", "--stdio")
	// Naming them in the configuration approves them, at the first start. A call of
	// each has it compiled.
	l.say("%s: first start, which compiles", row)
	first, err := l.listed(ctx, s)
	if err != nil {
		return serverSpec{}, err
	}
	return s, errors.Join(first.callEach(ctx, len(dirs)), first.close())
}

// callEach calls echo of each package, of which there are so many.
func (s *server) callEach(ctx context.Context, packages int) error {
	tools, err := s.session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	called := 0
	for _, t := range tools.Tools {
		if !strings.HasSuffix(t.Name, "echo") {
			continue
		}
		answer, err := s.call(ctx, t.Name, object{s.spec.echoKey: hello})
		if err == nil {
			err = holds(hello)(answer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.spec.row, err)
		}
		called++
	}
	if called != packages {
		return fmt.Errorf("%s: %d packages have echo, not %d", s.spec.row, called, packages)
	}
	return nil
}
