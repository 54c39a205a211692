package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOwner: a managed volume belongs to a package of the same name from
// elsewhere. A name is chosen by the author of a package: it opens nothing.
var ErrOwner = errors.New("managed volumes belong to another package of this name")

// managedOwner is the folder of a package's managed volumes and where the
// package comes from. The first package of a name that uses a managed volume
// leaves its source in a file beside the volumes; one from elsewhere is refused.
type managedOwner struct {
	dir    string // of the managed volumes
	source string // absolute path of the package's folder
}

func (o managedOwner) file() string { return o.dir + ".owner" }

// check returns [ErrOwner] when the volumes belong to another package.
func (o managedOwner) check() error {
	owner, err := os.ReadFile(o.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case string(owner) != o.source:
		return fmt.Errorf("%w, from %s; give a folder with --volume, or use another --state", ErrOwner, owner)
	}
	return nil
}

// claim makes the package the owner, if there is none.
func (o managedOwner) claim() error {
	if err := os.MkdirAll(filepath.Dir(o.dir), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(o.dir), ".owner-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err := temp.WriteString(o.source); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	// A link is made whole or not at all, and not over another.
	if err := os.Link(temp.Name(), o.file()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.check()
}
