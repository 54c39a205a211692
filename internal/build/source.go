package build

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrSource: a source holds what a build must not follow or read.
var ErrSource = errors.New("source refused")

// Bounds of a source tree. Toolchains read whatever they find.
const (
	maxSourceFiles = 20_000
	maxSourceBytes = 256 << 20
)

// sdkModule is the one module that a source may replace by a folder elsewhere:
// it is ours, and not published yet.
const sdkModule = "github.com/sandboxd/sandboxd"

// checkTree refuses a source whose files are not what they seem: a link leads
// the toolchain to any file of the host, which it would compile in, and a pipe
// or device never ends.
func checkTree(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("source folder %s: not found", dir)
	}
	files, bytes := 0, int64(0)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		switch {
		case d.IsDir() && path != dir && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%w: %s is a link or a special file; put the file itself there", ErrSource, path)
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		files++
		bytes += info.Size()
		if files > maxSourceFiles || bytes > maxSourceBytes {
			return fmt.Errorf("%w: %s: more than %d files or %d MiB; give the source a folder of its own", ErrSource, dir, maxSourceFiles, maxSourceBytes>>20)
		}
		return nil
	})
}

// skipped reports whether the go command passes a folder by: those that begin
// with a dot or an underscore (go help packages).
func skipped(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// readSource reads a regular file of a source, up to the bound of a tree.
func readSource(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is a link or a special file; put the file itself there", ErrSource, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
	if err == nil && len(b) > maxSourceBytes {
		err = fmt.Errorf("%w: %s is larger than %d MiB", ErrSource, path, maxSourceBytes>>20)
	}
	return b, err
}

// goModule is what `go list -json` says about the module of a package.
type goModule struct {
	Path      string
	Dir       string
	GoVersion string
	Main      bool
	Replace   *struct{ Path, Version, Dir string }
}

// checkModules refuses modules that are replaced by a folder outside of the
// source's own module: what lies there is not the author's to give.
func checkModules(packages []goPackage) error {
	var root string
	for _, p := range packages {
		if p.Module != nil && p.Module.Main {
			root = p.Module.Dir
		}
	}
	for _, p := range packages {
		m := p.Module
		if m == nil || m.Replace == nil || m.Replace.Version != "" || m.Path == sdkModule {
			continue
		}
		rel, err := filepath.Rel(root, m.Replace.Dir)
		if root == "" || err != nil || !filepath.IsLocal(rel) {
			return fmt.Errorf("%w: go.mod replaces %s by %s, outside of its own module; vendor it", ErrSource, m.Path, m.Replace.Path)
		}
		if err := checkTree(m.Replace.Dir); err != nil {
			return err
		}
	}
	return nil
}
