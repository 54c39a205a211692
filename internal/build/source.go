package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
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

var errTooMuch = fmt.Errorf("more than %d files or %d MiB; give the source a folder of its own", maxSourceFiles, maxSourceBytes>>20)

// checkTree refuses a source whose files are not what they seem, also those that
// no build reads: a link leads to any file of the host, and a pipe or device
// never ends. shown is the folder as errors name it.
func checkTree(dir, shown string) error {
	switch info, err := os.Lstat(dir); {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return refused(shown, regular.ErrLink)
	case err != nil || !info.IsDir():
		return fmt.Errorf("source folder %s: not found", shown)
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
			return refused(filepath.Join(shown, strings.TrimPrefix(path, dir)), regular.ErrLink)
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		files++
		bytes += info.Size()
		if files > maxSourceFiles || bytes > maxSourceBytes {
			return fmt.Errorf("%w: %s: %w", ErrSource, shown, errTooMuch)
		}
		return nil
	})
}

// skipped reports whether the go command passes a folder by: those that begin
// with a dot or an underscore (go help packages).
func skipped(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
