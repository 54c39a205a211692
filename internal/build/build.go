// Package build turns the source of a tool package into a WebAssembly module
// with the toolchain of its language. Results are kept in a cache, by what went
// into them; the source folder is never written to.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxd/sandboxd/tool"
)

// Errors of a build. Those of a compiler match none of them.
var (
	ErrLanguage    = errors.New("language not supported")
	ErrNoToolchain = errors.New("no usable toolchain")
)

// Options of a [Builder]. The zero value builds without saying so and keeps
// results in the user's cache folder.
type Options struct {
	// Cache is the folder whose subfolder "build" keeps the results; default:
	// sandboxd in the user's cache folder.
	Cache string
	// Progress receives a line when a build starts; nil: none. Results from the
	// cache are not announced.
	Progress io.Writer
	// Go is the go command; default: the one on PATH.
	Go string
}

// Builder builds modules. It is safe for concurrent use, also by several
// processes on one cache.
type Builder struct {
	options Options

	mu sync.Mutex // held while a compiler runs: it uses all processors anyway
}

// New returns a builder.
func New(o Options) (*Builder, error) {
	if o.Cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cache folder: %w", err)
		}
		o.Cache = filepath.Join(base, "sandboxd")
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Go == "" {
		o.Go = "go"
	}
	return &Builder{options: o}, nil
}

// Build returns the module of the source s of the package in dir, from the
// cache where the same source was built before. The error of a compiler is a
// [*CompileError].
func (b *Builder) Build(ctx context.Context, dir string, s tool.Source, abi tool.ABI) ([]byte, error) {
	switch s.Language {
	case "go":
		return b.buildGo(ctx, dir, s, abi)
	case "":
		return nil, fmt.Errorf("source of %s: language is missing: want go", dir)
	}
	return nil, fmt.Errorf("source of %s: language %q: %w: want go, or build the module yourself and give its path as module", dir, s.Language, ErrLanguage)
}

// Func returns the builder as [tool.Load] wants it.
func (b *Builder) Func(ctx context.Context) tool.Builder {
	return func(dir string, s tool.Source, abi tool.ABI) ([]byte, error) {
		return b.Build(ctx, dir, s, abi)
	}
}

// CompileError is what a compiler said about a source.
type CompileError struct {
	Dir    string // the folder that was built
	Output string // what the compiler wrote, with file and line
	Err    error  // how it ended
}

// shownLines bounds the compiler output in the text of a [CompileError].
const shownLines = 10

// Error returns the first lines of the compiler's output, on one line with the
// folder where there is only one.
func (e *CompileError) Error() string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(e.Output), "\n"), func(l string) bool {
		return strings.HasPrefix(l, "# ") // the go command's heading for a package
	})
	if more := len(lines) - shownLines; more > 0 {
		lines = append(lines[:shownLines], fmt.Sprintf("… and %d more lines", more))
	}
	if e.Output == "" {
		lines = []string{e.Err.Error()}
	}
	sep := " "
	if len(lines) > 1 {
		sep = "\n"
	}
	return fmt.Sprintf("source of %s does not build:%s%s%s", e.Dir, sep, strings.Join(lines, "\n"), e.mend(sep))
}

// noPackage matches what the go command says where it cannot find a package or
// its module.
var noPackage = regexp.MustCompile(`no required module provides|cannot find module|missing go.sum entry|unknown revision|reading github\.com/sandboxd|is not in std|invalid version|go: updates to go\.mod needed`)

const project = "github.com/sandboxd/sandboxd"

// mend says how a module finds the project's own packages, which are on no
// proxy, where that is what is missing.
func (e *CompileError) mend(sep string) string {
	if !strings.Contains(e.Output, project) || !noPackage.MatchString(e.Output) {
		return ""
	}
	if sep == " " {
		sep = "; "
	}
	return sep + "the SDK comes from a clone of sandboxd; run: go mod edit -require " + project + "@v0.0.0 -replace " + project + "=/path/to/clone"
}

// Unwrap returns how the compiler ended.
func (e *CompileError) Unwrap() error { return e.Err }
