package asyncify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Choices of a program, besides its path.
const (
	Off  = "off"
	Auto = "auto" // the one on PATH
)

// Options of a [Tool]. The zero value is off.
type Options struct {
	Program string        // a path, [Auto] or [Off]; default: Off
	Cache   string        // folder that keeps results; empty: nothing is kept
	Timeout time.Duration // of one run; default 30 min
	Memory  uint64        // bytes that one run may have; default 6 GiB
}

// Tool is a wasm-opt. It is safe for concurrent use, also by several processes on
// one cache.
type Tool struct {
	options Options
	turn    chan struct{} // full while a module is rewritten: that uses all processors anyway, and much memory

	mu      sync.Mutex
	version string // what it says of itself; empty: it was not asked yet
}

// arguments make a module that can be left in fd_read and in no other function of
// the host. The features are those of the core specification 2.0, which is what a
// host compiles: a module need not list them. Without -O1 the module has twice the
// code, which takes an engine twice as long to compile.
var arguments = []string{
	"--enable-sign-ext", "--enable-mutable-globals", "--enable-bulk-memory", "--enable-nontrapping-float-to-int",
	"--enable-simd", "--enable-multivalue", "--enable-reference-types",
	"--asyncify", "--pass-arg=asyncify-imports@wasi_snapshot_preview1.fd_read", "-O1",
}

// New finds wasm-opt and does not run it. Errors match [ErrOff], [ErrNotFound] or
// [ErrSystem].
func New(o Options) (*Tool, error) {
	o.Timeout, o.Memory = cmp.Or(o.Timeout, 30*time.Minute), cmp.Or(o.Memory, 6<<30)
	switch o.Program {
	case "", Off:
		return nil, ErrOff
	case Auto:
		o.Program = "wasm-opt"
	}
	if !confines {
		return nil, ErrSystem
	}
	path, err := exec.LookPath(o.Program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	o.Program = path
	return &Tool{options: o, turn: make(chan struct{}, 1)}, nil
}

// Version returns what wasm-opt says of itself. Errors are [*RunError], or those of
// files.
func (t *Tool) Version(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != "" {
		return t.version, nil
	}
	dir, err := t.private()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out, err := t.run(ctx, time.Minute, dir, nil, "--version")
	if err != nil {
		return "", err
	}
	version := oneLine(out)
	if !strings.Contains(version, "version") {
		return "", &RunError{Err: fmt.Errorf("%s says %q when it is asked for its version", t.options.Program, version)}
	}
	t.version = version
	return version, nil
}

// key names the result of a module: by all that it comes of.
func (t *Tool) key(ctx context.Context, module []byte) (string, error) {
	version, err := t.Version(ctx)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %x", version, arguments, sha256.Sum256(module))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// private makes a folder for one run, which the caller removes.
func (t *Tool) private() (string, error) {
	if t.options.Cache != "" {
		if err := os.MkdirAll(t.options.Cache, 0o700); err != nil {
			return "", fmt.Errorf("cache folder: %w", err)
		}
	}
	dir, err := os.MkdirTemp(t.options.Cache, "run-")
	if err != nil {
		return "", fmt.Errorf("folder for wasm-opt: %w", err)
	}
	return dir, nil
}

// Rewrite returns the module as asyncify makes it, from the cache where it was made
// before. The result has been checked to import nothing else, and to export the same
// functions and asyncify's: what it does is nobody's word. Errors match [ErrModule] or
// [ErrResult], or are [*RunError], those of files, or the cause of ctx.
func (t *Tool) Rewrite(ctx context.Context, module []byte) ([]byte, error) {
	if t == nil {
		return nil, ErrOff
	}
	original, err := fit(module)
	if err != nil {
		return nil, err
	}
	key, err := t.key(ctx, module)
	if err != nil {
		return nil, err
	}
	if out, ok := t.kept(key); ok {
		return out, check(original, out)
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	unlock, err := t.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if out, ok := t.kept(key); ok { // made while this waited
		return out, check(original, out)
	}
	dir, err := t.private()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "out.wasm")
	if _, err := t.run(ctx, t.options.Timeout, dir, module, append([]string{"-", "-o", to}, arguments...)...); err != nil {
		return nil, err
	}
	out, err := result(dir)
	if err != nil {
		return nil, err
	}
	if err := check(original, out); err != nil {
		return nil, err
	}
	return out, t.keep(key, out)
}
