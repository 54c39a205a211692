package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/tool"
)

// lab is where the subjects are built, and what there is to build them with.
type lab struct {
	root string // the repository
	work string // everything that is built, and the files that are worked on
	// scripts is the folder of the interpreters; empty: they are installed where
	// there is time.
	scripts string
	log     io.Writer

	short    bool
	required bool // a peer that is missing is an error
	rounds   int
	each     time.Duration

	closers []func() error
}

// config returns the configuration of a peer's engine. What one compiles, others
// find in a folder.
func (l *lab) config() (wazero.RuntimeConfig, error) {
	cache, err := wazero.NewCompilationCacheWithDir(l.path("cache-of-peers"))
	if err != nil {
		return nil, err
	}
	l.onClose(func() error { return cache.Close(context.Background()) })
	return wazero.NewRuntimeConfig().WithCompilationCache(cache), nil
}

// missingError is a peer or a tool that is not on this machine.
type missingError struct{ what, mend string }

func (e *missingError) Error() string { return e.what + " is not here; " + e.mend }

// options returns how long a table with so many callers is measured.
func (l *lab) options(callers int) measure.Options {
	return measure.Options{Rounds: l.rounds, Each: l.each, Warm: l.each, Callers: callers, Least: 1}
}

// callers returns the numbers of callers of a table; a short run has the first.
func (l *lab) callers(all ...int) []int {
	if l.short {
		return all[:1]
	}
	return all
}

// onClose has f done when the lab closes, before all that was asked for earlier.
func (l *lab) onClose(f func() error) { l.closers = append(l.closers, f) }

func (l *lab) close() error { return l.closeTo(0) }

// closeTo undoes what was asked for since there were n closers.
func (l *lab) closeTo(n int) error {
	var errs []error
	for len(l.closers) > n {
		last := len(l.closers) - 1
		f := l.closers[last]
		l.closers = l.closers[:last]
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.log, format+"\n", args...) }

// path returns a path in the work folder.
func (l *lab) path(elements ...string) string {
	return filepath.Join(append([]string{l.work}, elements...)...)
}

// run runs a program of the build and returns what it printed.
func (l *lab) run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// goBuild builds a Go program of a module that is at dir.
func (l *lab) goBuild(ctx context.Context, dir, pkg, name string, env []string, flags ...string) (string, error) {
	out := l.path("bin", name)
	args := append([]string{"build", "-o", out}, flags...)
	_, err := l.run(ctx, dir, append([]string{"CGO_ENABLED=0"}, env...), "go", append(args, pkg)...)
	return out, err
}

// sandboxd builds the program under test.
func (l *lab) sandboxd(ctx context.Context) (string, error) {
	return l.goBuild(ctx, l.root, "./cmd/sandboxd", "sandboxd", nil)
}

// state returns the flags of sandboxd that keep it to a state folder of that
// name and to the lab's cache.
func (l *lab) state(name string) []string {
	return []string{"--state", l.path("state", name), "--cache", l.path("cache")}
}

// ship builds a package of the repository and returns the folder that it is
// in with its module: its own, where it has its module there.
func (l *lab) ship(ctx context.Context, dir string) (string, error) {
	source := filepath.Join(l.root, filepath.FromSlash(dir))
	manifest, err := os.ReadFile(filepath.Join(source, "tool.yaml"))
	if err != nil {
		return "", &missingError{"the guest " + dir, "this tree has no such folder"}
	}
	if !bytes.Contains(manifest, []byte("\nsource:")) {
		return source, nil
	}
	builder, err := build.New(build.Options{Cache: l.path("cache")})
	if err != nil {
		return "", err
	}
	p, err := tool.Load(source, builder.Func(ctx))
	if err != nil {
		return "", err
	}
	const module = "module.wasm"
	text, err := p.Prebuilt(module)
	if err != nil {
		return "", err
	}
	out := l.path("packages", strings.ReplaceAll(dir, "/", "-"))
	return out, writeFiles(out, map[string]string{"tool.yaml": string(text), module: string(p.Module)})
}

// compiler returns a C compiler for this machine.
func compiler() (string, error) {
	for _, name := range []string{"clang", "gcc", "cc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &missingError{"a C compiler", "apt-get install gcc libc6-dev"}
}

// wasmCompiler returns the C compiler that the guests in C are built with.
func wasmCompiler() (string, error) {
	clang, err := exec.LookPath("clang-19")
	if err == nil {
		_, err = exec.LookPath("wasm-ld-19")
	}
	if err == nil {
		_, err = os.Stat("/usr/include/wasm32-wasi")
	}
	if err != nil {
		return "", &missingError{"the C compiler for WebAssembly", "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32"}
	}
	return clang, nil
}

// bubblewrap returns the program that puts a process into namespaces of its own.
func bubblewrap() (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", &missingError{"bubblewrap", "apt-get install bubblewrap"}
	}
	if out, err := exec.Command(path, "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		return "", &missingError{"a bubblewrap that works", fmt.Sprintf("allow user namespaces, or run as root: %s", strings.TrimSpace(string(out)))}
	}
	return path, nil
}

// npmServers are the reference servers, by folder below node_modules.
const npmScope = "@modelcontextprotocol"

// node returns the folder of the reference servers of npm, which are installed
// as package-lock.json names them, and the program that runs them.
func (l *lab) node(ctx context.Context) (program, modules string, err error) {
	mend := "install Node 20 or later with npm"
	if program, err = exec.LookPath("node"); err != nil {
		return "", "", &missingError{"Node", mend}
	}
	if _, err = exec.LookPath("npm"); err != nil {
		return "", "", &missingError{"npm", mend}
	}
	source := filepath.Join(l.root, "bench", "peers", "npm")
	hash := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", "", err
		}
		hash.Write(b)
	}
	dir := l.path("npm-" + hex.EncodeToString(hash.Sum(nil))[:12])
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return program, modules, nil
	}
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil && !errors.Is(err, os.ErrExist) {
		return "", "", err
	}
	l.say("installing the reference servers of npm")
	if _, err := l.run(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return "", "", &missingError{"the reference servers of npm", "npm must reach its registry: " + err.Error()}
	}
	return program, modules, os.WriteFile(filepath.Join(dir, "installed"), nil, 0o600)
}
