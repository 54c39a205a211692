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
	"path/filepath"
	"slices"
)

// digestVersion changes when what goes into a digest, or how modules are
// built from it, changes.
const digestVersion = "1"

// goSettings are the settings of the go command that change its output and are
// not in its flags.
var goSettings = []string{"GOVERSION", "GOFLAGS", "GOEXPERIMENT"}

// goPackage is what `go list -json` says about a package.
type goPackage struct {
	Dir        string
	ImportPath string
	Standard   bool
	Name       string
	Module     *goModule

	GoFiles, EmbedFiles, SFiles, HFiles, SysoFiles []string
}

// digest identifies what a build would give: the files of every package that
// is not of the standard library, the go command and its settings and flags.
// Where the folder lies does not matter.
func (g goTool) digest(ctx context.Context, flags []string) (string, error) {
	settings, err := g.run(ctx, append([]string{"env", "-json"}, goSettings...)...)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	field(h, digestVersion)
	field(h, string(settings))
	for _, f := range flags {
		field(h, f)
	}
	list, err := g.run(ctx, "list", "-deps", "-json=Dir,ImportPath,Standard,Name,Module,GoFiles,EmbedFiles,SFiles,HFiles,SysoFiles", ".")
	if err != nil {
		return "", err
	}
	packages, err := decodePackages(list)
	if err != nil {
		return "", fmt.Errorf("go list of %s: %w", g.dir, err)
	}
	if err := checkModules(packages); err != nil {
		return "", err
	}
	for _, p := range packages {
		if err := p.digest(h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
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
	if p.Standard {
		return nil
	}
	field(h, p.ImportPath)
	field(h, p.Name)
	if p.Module != nil {
		field(h, p.Module.GoVersion) // selects the language version
	}
	for _, name := range slices.Concat(p.GoFiles, p.EmbedFiles, p.SFiles, p.HFiles, p.SysoFiles) {
		text, err := readSource(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		field(h, name)
		field(h, string(text))
	}
	return nil
}

// field adds s with its length, so that no two lists of fields look alike.
func field(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:%s", len(s), s)
}
