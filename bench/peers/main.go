// Command peers measures sandboxd beside what would be taken in its place, and
// writes REPORT.md and its plots. It runs on Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/report"
	"github.com/sandboxd/sandboxd/internal/asyncify"
)

// gogc is the garbage-collection target of this process: that of sandboxd's
// daemon, and the better one for all that runs in it.
const gogc = 400

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) (err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(log)
	out := flags.String("out", "", "folder that REPORT.md and the plots are written to; empty: the report goes to standard output")
	root := flags.String("root", "../..", "the repository")
	work := flags.String("work", "", "folder of what is built; empty: a new one, removed at the end")
	short := flags.Bool("short", false, "show in seconds that all of it works; peers may be missing")
	rounds := flags.Int("rounds", 15, "rounds of each table")
	each := flags.Duration("each", 400*time.Millisecond, "how long a subject runs in a round, at least")
	only := flags.String("only", "", "parts to measure, separated by commas: "+strings.Join(partNames(), ", ")+"; empty: all")
	scripts := flags.String("interpreters", "", "folder that guests/interpreters.sh fills; empty: one in the work folder, and none in a short run")
	residue := flags.String("residue", "", "file of the residue test, its -residuereport; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: not a flag", flags.Arg(0))
	}
	l := &lab{log: log, short: *short, required: !*short && *only == "", rounds: *rounds, each: *each}
	if l.short {
		l.rounds, l.each = 1, 20*time.Millisecond
	}
	if *scripts != "" {
		if l.scripts, err = filepath.Abs(*scripts); err != nil {
			return err
		}
	}
	if l.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if err := l.makeWork(*work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := adopt(); err != nil {
		return err
	}
	if err := l.requirements(ctx); err != nil {
		return err
	}
	debug.SetGCPercent(gogc)

	r := &report.Results{Machine: report.NewMachine(gogc), Short: l.short, Command: "go -C bench/peers run . " + strings.Join(args, " ")}
	if r.Residues, err = readResidue(*residue); err != nil {
		return err
	}
	if err := l.parts(ctx, r, *only); err != nil {
		return err
	}
	l.versions(&r.Machine)
	if err := write(r, *out); err != nil {
		return err
	}
	return errors.Join(r.Failures()...)
}

// requirements returns an error where peers that have to be here are not.
func (l *lab) requirements(ctx context.Context) error {
	if !l.required {
		return nil
	}
	_, _, noNode := l.node(ctx)
	_, noBwrap := bubblewrap()
	_, noCompiler := compiler()
	_, noWasm := wasmCompiler()
	_, noAsyncify := asyncify.New(asyncify.Options{Program: asyncify.Auto})
	if noAsyncify != nil {
		noAsyncify = &missingError{"wasm-opt", "apt-get install binaryen: " + noAsyncify.Error()}
	}
	return errors.Join(noNode, noBwrap, noCompiler, noWasm, noAsyncify)
}

// makeWork makes the work folder, which is removed when the lab closes unless
// the user named it.
func (l *lab) makeWork(dir string) (err error) {
	if dir == "" {
		if l.work, err = os.MkdirTemp("", "sandboxd-peers-*"); err != nil {
			return err
		}
		l.onClose(func() error { return os.RemoveAll(l.work) })
	} else if l.work, err = filepath.Abs(dir); err != nil {
		return err
	}
	for _, sub := range []string{"bin", "packages", "state"} {
		if err := os.MkdirAll(l.path(sub), 0o755); err != nil {
			return err
		}
	}
	return l.makeData()
}

// part is one group of measurements.
type part struct {
	name    string
	measure func(*lab, context.Context, *report.Results) error
}

var allParts = []part{
	{"engine", func(l *lab, ctx context.Context, r *report.Results) error {
		tables, err := l.engineTables(ctx)
		r.Tables = append(r.Tables, tables...)
		return err
	}},
	{"reset", func(l *lab, ctx context.Context, r *report.Results) error {
		n := len(l.closers)
		table, curve, err := l.resets(ctx)
		if err := errors.Join(err, l.closeTo(n)); err != nil {
			return err
		}
		r.Tables, r.Curves = append(r.Tables, table), append(r.Curves, curve)
		return nil
	}},
	{"loop", func(l *lab, ctx context.Context, r *report.Results) error {
		tables, err := l.loopTables(ctx)
		r.Tables = append(r.Tables, tables...)
		return err
	}},
	{"same-server", func(l *lab, ctx context.Context, r *report.Results) error {
		tables, err := l.sameServer(ctx)
		r.Tables = append(r.Tables, tables...)
		return err
	}},
	{"mcp", func(l *lab, ctx context.Context, r *report.Results) error {
		tables, err := l.mcpTables(ctx)
		r.Tables = append(r.Tables, tables...)
		return err
	}},
	{"start", func(l *lab, ctx context.Context, r *report.Results) error {
		table, idle, err := l.startTable(ctx)
		if err == nil {
			r.Tables, r.Memory = append(r.Tables, table), idle
		}
		return err
	}},
	{"growth", func(l *lab, ctx context.Context, r *report.Results) error {
		curves, err := l.curves(ctx)
		r.Curves = append(r.Curves, curves...)
		return err
	}},
}

func partNames() (names []string) {
	for _, p := range allParts {
		names = append(names, p.name)
	}
	return names
}

// parts measures those that are named, or all.
func (l *lab) parts(ctx context.Context, r *report.Results, only string) error {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		if name != "" {
			wanted[name] = true
		}
	}
	for _, p := range allParts {
		if only != "" && !wanted[p.name] {
			continue
		}
		delete(wanted, p.name)
		if err := p.measure(l, ctx, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for name := range wanted {
		return fmt.Errorf("-only %s: no such part; there are %s", name, strings.Join(partNames(), ", "))
	}
	return nil
}

// readResidue reads what the residue test found; nothing where no file is named.
func readResidue(file string) ([]report.Residue, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.ReadResidue(f)
}

// write writes the report and its plots.
func write(r *report.Results, dir string) error {
	if dir == "" {
		return r.Markdown(os.Stdout)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range r.Curves {
		if err := c.SVG(dir); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "REPORT.md"))
	if err != nil {
		return err
	}
	return errors.Join(r.Markdown(f), f.Close())
}

// versions names what was measured.
func (l *lab) versions(m *report.Machine) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/modelcontextprotocol/go-sdk":
				m.Versions = append(m.Versions, report.Version{Name: "go-sdk (client, stock server and sandboxd)", Version: d.Version})
			case "github.com/tetratelabs/wazero":
				m.Versions = append(m.Versions, report.Version{Name: "wazero (also under Extism)", Version: d.Version})
			case "github.com/extism/go-sdk":
				m.Versions = append(m.Versions, report.Version{Name: "Extism Go SDK", Version: d.Version})
			}
		}
	}
	m.Says("Node", "node", "--version")
	m.Says("", "bwrap", "--version")
	m.Says("", "clang", "--version")
}
