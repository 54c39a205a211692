package stored

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Export writes the tree into a folder of the host, which it makes when it is
// missing and which has to be empty: [ErrNotEmpty]. Files get the contents, modes
// and times that they have in the volume. What was written when something fails
// stays.
func Export(ctx context.Context, t *Tree, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer root.Close()
	if err := vacant(root); err != nil {
		return fmt.Errorf("export to %s: %w", dir, err)
	}
	e := exporter{ctx: ctx, tree: t, root: root}
	if err := e.dir("."); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func vacant(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	switch _, err := d.Readdirnames(1); {
	case err == nil:
		return ErrNotEmpty
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// exporter writes a tree to a folder.
type exporter struct {
	ctx  context.Context
	tree *Tree
	root *os.Root
}

// dir writes what is in a directory, and then its mode and time: it may be one
// that cannot be written to.
func (e *exporter) dir(name string) error {
	list, err := e.tree.list(e.ctx, name)
	if err != nil {
		return err
	}
	for _, entry := range list {
		if err := e.entry(join(name, entry.Name), entry.Kind); err != nil {
			return err
		}
	}
	n, err := e.tree.node(e.ctx, name)
	if err != nil {
		return err
	}
	p, err := filepath.Localize(name)
	if err != nil {
		return err
	}
	if name != "." { // the folder itself is the operator's
		if err := e.root.Chmod(p, n.mode); err != nil {
			return err
		}
	}
	return e.root.Chtimes(p, time.Time{}, n.time)
}

func (e *exporter) entry(name string, k volume.Kind) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	p, err := filepath.Localize(name)
	if err != nil {
		return fmt.Errorf("%s: a name that this system cannot have: %w", name, err)
	}
	if k == volume.Dir {
		if err := e.root.Mkdir(p, 0o700); err != nil {
			return err
		}
		return e.dir(name)
	}
	if err := e.file(name, p); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (e *exporter) file(name, p string) error {
	n, err := e.tree.node(e.ctx, name)
	if err != nil {
		return err
	}
	f, err := e.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = Read(e.ctx, e.tree, name, f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := e.root.Chmod(p, n.mode); err != nil {
		return err
	}
	return e.root.Chtimes(p, time.Time{}, n.time)
}
