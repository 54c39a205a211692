package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

// buildTime bounds one build: a source can be written so that its compiler
// takes for ever.
const buildTime = 10 * time.Minute

var errBuildTime = fmt.Errorf("build took longer than %s", buildTime)

// goFlags build the same module from the same source wherever it lies: no
// paths, no version control stamp, no symbols.
var goFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// buildGo builds the Go program of a source, from a private copy: the author may
// change the folder while it is read.
func (b *Builder) buildGo(ctx context.Context, pkg string, s tool.Source, abi tool.ABI) ([]byte, error) {
	dir := filepath.Join(pkg, s.Dir)
	flags, err := goFlagsFor(abi)
	if err != nil {
		return nil, fmt.Errorf("source of %s: %w", dir, err)
	}
	origin, err := locate(pkg, s)
	if err != nil {
		return nil, err
	}
	temp, err := privateFolder()
	if err != nil {
		return nil, fmt.Errorf("copy of the source: %w", err)
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeoutCause(ctx, buildTime, fmt.Errorf("source of %s: %w", dir, errBuildTime))
	defer cancel()
	g := &goTool{command: b.options.Go, dir: temp, source: dir, names: strings.NewReplacer()}
	settings, err := g.settings(ctx)
	if err != nil {
		return nil, err
	}
	copied, err := take(ctx, g, temp, origin)
	if err != nil {
		return nil, err
	}
	flags = append(slices.Clip(flags), copied.mod())
	question, err := copied.question(flags, settings)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(b.options.Cache, "build")
	known, entry := answers(folder), func(digest string) string { return filepath.Join(folder, digest+".wasm") }
	if digest, ok := known.find(question); ok {
		if module, ok := cached(entry(digest)); ok {
			return module, nil
		}
	}
	digest, whole, err := copied.digest(ctx, g, flags, settings)
	if err != nil {
		return nil, err
	}
	module, err := b.module(ctx, g, entry(digest), abi, flags)
	if err == nil && whole {
		known.keep(question, digest)
	}
	return module, err
}

// module returns what a source is built to, from the cache where it was built before.
func (b *Builder) module(ctx context.Context, g *goTool, entry string, abi tool.ABI, flags []string) ([]byte, error) {
	if module, ok := cached(entry); ok {
		return module, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if module, ok := cached(entry); ok {
		return module, nil
	}
	fmt.Fprintf(b.options.Progress, "building %s (go, %s)\n", filepath.Base(g.source), abi)
	return g.build(ctx, entry, flags)
}

// privateFolder makes a folder that only this user may look into.
func privateFolder() (string, error) {
	temp, err := os.MkdirTemp("", "sandboxd-build-")
	if err != nil {
		return "", err
	}
	private, err := filepath.Abs(temp)
	if err == nil {
		private, err = filepath.EvalSymlinks(private) // as the go command shows it
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(temp))
	}
	return private, nil
}

func goFlagsFor(abi tool.ABI) ([]string, error) {
	switch abi {
	case tool.Command, tool.MCP:
		return goFlags, nil
	case tool.Reactor, tool.Extism:
		return append(slices.Clip(goFlags), "-buildmode=c-shared"), nil
	}
	return nil, fmt.Errorf("abi %q: unknown", abi)
}

// wasmMagic begins every WebAssembly binary (core specification 5.5.16).
const wasmMagic = "\x00asm"

// cached returns a result that was built before. What is not a module, after a
// full disk for example, counts as absent.
func cached(entry string) ([]byte, bool) {
	module, err := os.ReadFile(entry)
	return module, err == nil && bytes.HasPrefix(module, []byte(wasmMagic))
}

// goTool is a go command that runs in a folder with the target set.
type goTool struct {
	command string
	dir     string
	source  string            // the author's folder, for messages
	names   *strings.Replacer // of private paths in messages by the author's
}

// build compiles into the cache. The result appears under its name in one
// step, so that other processes see all of it or nothing.
func (g *goTool) build(ctx context.Context, entry string, flags []string) ([]byte, error) {
	folder := filepath.Dir(entry)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	temp, err := os.MkdirTemp(folder, "tmp-")
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	defer os.RemoveAll(temp)
	out, err := filepath.Abs(filepath.Join(temp, "module.wasm"))
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	args := append([]string{"build"}, flags...)
	if _, err := g.run(ctx, append(args, "-o", out, ".")...); err != nil {
		return nil, err
	}
	module, ok := cached(out)
	if !ok {
		return nil, fmt.Errorf("source of %s: not a program: its package is not main", g.source)
	}
	if err := os.Rename(out, entry); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return module, nil
}

// run runs the go command and returns its standard output.
func (g *goTool) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, g.command, args...)
	cmd.Dir = g.dir
	cmd.Env = goEnv(os.Environ())
	cmd.WaitDelay = 5 * time.Second
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("go command %q: %w, and it is needed to see whether the source changed since it was built: "+
			"install Go 1.26 or later (https://go.dev/dl), or write the package elsewhere with sandboxd build --out", g.command, ErrNoToolchain)
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	if !ended || args[0] == "env" {
		return nil, fmt.Errorf("go command %s: %w: %w%s; mend the installation, or PATH", cmd.Path, ErrNoToolchain, err, said(diag.String()))
	}
	return nil, &CompileError{Dir: g.source, Output: g.names.Replace(diag.String()), Err: exit}
}

// said returns the first line of what a command wrote, as the rest of a
// sentence.
func said(output string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}

// goEnv is the user's environment with the target set to WASI preview 1. What
// other targets would read is taken away, and so are flags that would change
// the kind of result or write to the source folder.
func goEnv(env []string) []string {
	own := []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}
	// The author's go.mod chooses no toolchain, no workspace and no download:
	// what is not in the module cache or vendored is the user's to fetch.
	own = append(own, "GOTOOLCHAIN=local", "GO111MODULE=on", "GOWORK=off", "GOPROXY=off", "GOVCS=*:off")
	drop := []string{"GOOS", "GOARCH", "GOWASM", "CGO_ENABLED", "PWD", "GOTOOLCHAIN", "GO111MODULE", "GOWORK", "GOPROXY", "GOVCS"}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(drop, name):
		case name == "GOFLAGS":
			own = append(own, "GOFLAGS="+strings.Join(slices.DeleteFunc(strings.Fields(value), unwanted), " "))
		default:
			own = append(own, kv)
		}
	}
	return own
}

func unwanted(flag string) bool {
	switch name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); name {
	case "race", "msan", "asan", "cover", "buildmode", "o", "C":
		return true
	case "mod":
		return value == "mod"
	}
	return false
}
