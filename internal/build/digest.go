package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// digestVersion changes when what goes into a digest, or how modules are
// built from it, changes.
const digestVersion = "2"

// goSettings are the settings of the go command that change its output and are
// not in its flags.
var goSettings = []string{"GOVERSION", "GOFLAGS", "GOEXPERIMENT", "GOFIPS140"}

const moduleCache = "GOMODCACHE"

// settings asks the go command for its settings.
func (g *goTool) settings(ctx context.Context) (map[string]string, error) {
	out, err := g.run(ctx, append([]string{"env", "-json", moduleCache}, goSettings...)...)
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return settings, nil
}

// goPackage is what `go list -json` says about a package.
type goPackage struct {
	Dir        string
	ImportPath string
	Standard   bool
	Name       string
	Module     *goModule

	GoFiles, EmbedFiles, SFiles, HFiles, SysoFiles []string
}

const goPackageFields = "Dir,ImportPath,Standard,Name,Module,GoFiles,EmbedFiles,SFiles,HFiles,SysoFiles"

// goModule is what it says about the module of a package.
type goModule struct {
	Path, Version, GoVersion string
	Replace                  *modVersion
}

// digest identifies what a build of a snapshot gives: the files of every package
// that is not of the standard library, those that choose modules and their
// versions, the go command and its settings and flags. Where the source lies does
// not matter. It is whole where all of these files are in the snapshot.
func (s *snapshot) digest(ctx context.Context, g *goTool, flags []string, settings map[string]string) (digest string, whole bool, err error) {
	h := sha256.New()
	field(h, digestVersion)
	for _, name := range goSettings {
		field(h, settings[name])
	}
	fields(h, flags...)
	for _, name := range []string{goModName, goSumName, vendorNames} {
		text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", false, fmt.Errorf("copy of the source: %w", err)
		}
		field(h, string(text))
	}
	list, err := g.run(ctx, "list", s.mod(), "-deps", "-json="+goPackageFields, ".")
	if err != nil {
		if _, ok := errors.AsType[*CompileError](err); ok && s.outside != nil {
			return "", false, s.outside
		}
		return "", false, err
	}
	packages, err := decodePackages(list)
	if err != nil {
		return "", false, fmt.Errorf("go list of %s: %w", g.source, err)
	}
	whole = true
	for _, p := range packages {
		if p.Standard {
			continue
		}
		// The module cache is the user's, and nobody writes to it twice.
		if !within(s.temp, p.Dir) && !within(settings[moduleCache], p.Dir) {
			return "", false, fmt.Errorf("%w: package %s is in %s, outside of its own module; vendor it", ErrSource, p.ImportPath, p.Dir)
		}
		whole = whole && within(s.temp, p.Dir)
		if err := p.digest(h); err != nil {
			return "", false, err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), whole, nil
}

// mod returns the flag that has modules read from where they were copied, which
// no other setting undoes.
func (s *snapshot) mod() string {
	if s.vendored {
		return "-mod=vendor"
	}
	return "-mod=readonly"
}

// within reports whether a folder is another, or below.
func within(folder, dir string) bool {
	rel, err := filepath.Rel(folder, dir)
	return folder != "" && err == nil && filepath.IsLocal(rel)
}

func decodePackages(list []byte) ([]goPackage, error) {
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

func (p *goPackage) digest(h hash.Hash) error {
	fields(h, p.ImportPath, p.Name)
	if m := p.Module; m != nil {
		fields(h, m.Path, m.Version, m.GoVersion) // the last selects the language version
		if m.Replace != nil {
			fields(h, m.Replace.Path, m.Replace.Version)
		}
	}
	for _, name := range slices.Concat(p.GoFiles, p.EmbedFiles, p.SFiles, p.HFiles, p.SysoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return fmt.Errorf("copy of the source: %w", err)
		}
		fields(h, name, string(text))
	}
	return nil
}

// fields adds each of ss.
func fields(h hash.Hash, ss ...string) {
	for _, s := range ss {
		field(h, s)
	}
}

// field adds s with its length, so that no two lists of fields look alike.
func field(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:%s", len(s), s)
}
