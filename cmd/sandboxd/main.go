// Command sandboxd runs MCP tools as WebAssembly and holds each call to the
// annotations that its tool declares.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

func main() {
	// A reader that goes away is an error of the next write, not the end of the
	// process: what was made has to be cleared away.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process, whatever it is in
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}

// The exit statuses besides 0. A program under `run` ends with its own.
const (
	exitError     = 1 // refused, a fault of the host, a package that does not load, bad input
	exitViolation = 3
	exitToolError = 4
	exitConflict  = 5
	exitLimit     = 6 // a timeout too
)

// status is an exit status whose reason the command has already told.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// cli is the whole command line.
type cli struct {
	globals

	Demo    demoCmd    `cmd:"" help:"Show honest tools passing and lying tools stopped, with nothing but Go installed."`
	Serve   serveCmd   `cmd:"" help:"Serve packages to MCP clients."`
	Call    callCmd    `cmd:"" help:"Call one tool."`
	Undo    undoCmd    `cmd:"" help:"Take back what a call committed, if nothing has changed since."`
	Inspect inspectCmd `cmd:"" help:"Show what is known of a package without calling a tool."`
	Verify  verifyCmd  `cmd:"" help:"Tell whether a package's tools are what they declare."`
	Log     logCmd     `cmd:"" help:"Show what tools did and what was stopped."`
	Build   buildCmd   `cmd:"" help:"Build a package's module from its source."`
	Run     runCmd     `cmd:"" help:"Run any WASI program in the same sandbox."`
	Approve approveCmd `cmd:"" help:"Approve a package as it is now."`
	Pins    pinsCmd    `cmd:"" help:"List what is approved."`
	Volume  volumeCmd  `cmd:"" help:"List, read, fill and export managed volumes."`
	Config  configCmd  `cmd:"" help:"Check the operator's configuration."`
	Token   tokenCmd   `cmd:"" help:"Make a bearer token for a client of the daemon."`
	Version versionCmd `cmd:"" help:"Show the version."`
	Help    helpCmd    `cmd:"" help:"Show help on a command."`

	ShowVersion kong.VersionFlag `name:"version" help:"Show the version."`

	later
}

// later holds the commands that are parsed and not there yet.
type later struct {
	Release laterCmd `cmd:"" hidden:"" passthrough:""`
	New     laterCmd `cmd:"" hidden:"" passthrough:""`
	Attest  laterCmd `cmd:"" hidden:"" passthrough:""`
	Push    laterCmd `cmd:"" hidden:"" passthrough:""`
	Pull    laterCmd `cmd:"" hidden:"" passthrough:""`
}

type laterCmd struct {
	Args []string `arg:"" optional:""`
}

func (laterCmd) Run(c *kong.Context) error {
	return fmt.Errorf("%s: %w", c.Selected().Name, errNotYet)
}

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run is COMMAND --help.
func (c *helpCmd) Run(a *app) error {
	if code := run(a.ctx, append(c.Command, "--help"), a.stdin, a.stdout, a.stderr, a.env); code != 0 {
		return status(code)
	}
	return nil
}

// errNotYet is matched by what the contract has and this version has not.
var errNotYet = errors.New("not supported yet")

// halt is what kong's request to exit panics with; run recovers it.
type halt struct{ code int }

// run is the program: it parses the command line, carries it out, and returns
// the exit status. What went wrong is one line on stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			h, ok := p.(halt)
			if !ok {
				panic(p)
			}
			code = h.code
		}
	}()
	a := &app{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, env: env}
	var c cli
	parser, err := kong.New(&c,
		kong.Name("sandboxd"),
		kong.Description("MCP tools in a sandbox that holds each call to what its tool declares."),
		kong.Writers(stdout, stderr),
		kong.Vars{"version": "sandboxd " + version()},
		kong.Exit(func(code int) { panic(halt{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return a.fail(err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return a.fail(hint(err, args))
	}
	if err := a.set(c.globals); err != nil {
		return a.fail(err)
	}
	if err := command.Run(a, storeOpener(openStore)); err != nil {
		return a.fail(err)
	}
	return 0
}

// fail tells what went wrong and returns the exit status for it.
func (a *app) fail(err error) int {
	if s, ok := errors.AsType[status](err); ok {
		return int(s)
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitError // whoever would read it is gone
	}
	text := err.Error()
	if _, crashed := errors.AsType[*runtime.TrapError](err); crashed && !a.verbose {
		text = firstLine(text) // the rest is a stack of WebAssembly
	}
	fmt.Fprintf(a.stderr, "sandboxd: %s\n", term.Text(text))
	if l, ok := errors.AsType[*runtime.LoadError](err); ok {
		a.printLog(l.Log)
	}
	return exitError
}

// hint adds to a mistake on the command line what was probably meant.
func hint(err error, args []string) error {
	if strings.Contains(err.Error(), "unknown flag") && slices.Contains(args, "run") {
		return fmt.Errorf("%w; flags of the program come after --: sandboxd run MODULE.wasm -- FLAGS", err)
	}
	return err
}
