package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/tool"
)

// ownConfig is the name of the configuration that a bundled package may bring.
const ownConfig = "sandboxd.yaml"

// Entry returns what the demo gives a bundled package, extracted to source by
// [guests.Extract]: what the sandboxd.yaml in the package's folder says, else
// nothing. Its volumes are for [Seed] to add.
func Entry(source, name string) (config.Package, error) {
	folder := filepath.Join(source, "guests", name)
	c, err := config.Load(filepath.Join(folder, ownConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return config.Package{Source: folder, Limits: config.Default().Limits.Package}, nil
	}
	if err != nil {
		return config.Package{}, err
	}
	if len(c.Packages) != 1 || c.Packages[0].Source != folder {
		return config.Package{}, fmt.Errorf("%s of %s: lists other packages", ownConfig, name)
	}
	return c.Packages[0], nil
}

// Seed lays out the volumes of a bundled package, a folder each below dir, and
// gives them to its entry.
func Seed(spec *config.Package, name, dir string, vs []tool.VolumeRequest) error {
	spec.Folders = map[string]string{}
	for _, v := range vs {
		folder := filepath.Join(dir, v.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := guests.Seed(name, v.Name, folder); err != nil {
			return err
		}
		spec.Folders[v.Name] = folder
	}
	return nil
}
