// Package guests carries the sources of the bundled tool packages, so that an
// installed program can build and run them with nothing but a Go toolchain.
// Some of them are honest, some are not; each says which in its demo.json.
package guests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed all:sdk all:wasi
//go:embed all:notes all:search-index all:weather all:honest all:memory all:relaylink
//go:embed files/*.go files/tool.yaml files/*.json files/cases.yaml files/filetools/*.go files/glob/*.go files/command files/testdata
//go:embed all:liars all:escapes all:liars-init all:corpus
var sources embed.FS

// Names returns the names of the packages, honest ones first.
func Names() []string {
	return []string{"notes", "search-index", "weather", "honest", "memory", "files", "relaylink", "liars", "escapes", "liars-init"}
}

// goMod makes the extracted tree the module that its import paths name.
const goMod = "module github.com/sandboxd/sandboxd\n\ngo 1.26\n"

// Extract lays the sources out under dir as a Go module that builds without a
// network: package NAME is in dir/guests/NAME. Files that are there already are
// replaced in one step, and left alone where they are the same, so several
// processes may extract to one folder.
func Extract(dir string) error {
	if err := put(filepath.Join(dir, "go.mod"), []byte(goMod)); err != nil {
		return err
	}
	return fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		return put(filepath.Join(dir, "guests", filepath.FromSlash(name)), text)
	})
}

// put writes a file in one step unless it has that text.
func put(name string, text []byte) (err error) {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".extract-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if _, err := temp.Write(text); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}

// keep is the name of a file that stands for an empty folder.
const keep = ".keep"

// Seed lays out the initial content of a volume of a package in dir, which is
// made if need be. Folders may be empty, and links are made as the package's
// links.txt lists them; a package without content leaves dir as it is.
func Seed(name, volume, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := path.Join(name, "testdata", volume)
	err := fs.WalkDir(sources, root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == root {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, root)))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if path.Base(p) == keep {
			return nil
		}
		text, err := sources.ReadFile(p)
		if err != nil {
			return err
		}
		return put(to, text)
	})
	if err != nil {
		return fmt.Errorf("seed of %s: %w", name, err)
	}
	return seedLinks(name, volume, dir)
}

// seedLinks makes the symbolic links that testdata/links.txt lists, one a
// line: "VOLUME/PATH -> TARGET". They are listed because neither an embedded
// tree nor every version control system can hold links.
func seedLinks(name, volume, dir string) error {
	text, err := sources.ReadFile(path.Join(name, "testdata", "links.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		at, target, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			return fmt.Errorf("links of %s: line %q: want PATH -> TARGET", name, line)
		}
		rel, ok := strings.CutPrefix(at, volume+"/")
		if !ok {
			continue
		}
		link := filepath.Join(dir, filepath.FromSlash(rel))
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("links of %s: %w", name, err)
		}
	}
	return nil
}
