package volume

import (
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
)

// What only the host does, to put back what a call has taken away. No guest has a
// way to these.

// SetMode sets the permissions of a file or directory that was made or moved.
// EPERM for what is where the base has it, or where the base has something of its
// kind: that keeps the base's. ENOTSUP for links and special files, a [*LimitError].
func (o *Overlay) SetMode(n *Node, mode fs.FileMode) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case n.kind != File && n.kind != Dir:
		return capabilities.ENOTSUP
	case n.base == o.Path(n):
		return capabilities.EPERM
	}
	old, err := o.notes.at(o.Path(n))
	if err != nil {
		return err
	}
	if old.Exists && old.Kind == n.kind {
		return capabilities.EPERM
	}
	if err := o.count(n); err != nil {
		return err
	}
	n.mode = mode.Perm()
	o.version++
	return nil
}

// Symlink makes a link, wherever it leads. The overlay's change can be applied in
// this process only: a change that was decoded makes no link. The errors are those of Create, and
// EINVAL, EILSEQ and ENAMETOOLONG for what can be no target.
func (o *Overlay) Symlink(p Place, target string) error {
	if !plainTarget(target) {
		return checkPath(target)
	}
	n := &Node{kind: Symlink, mode: fs.ModePerm, target: strings.Clone(target)}
	n.body = body{size: int64(len(target))}
	_, err := o.make(p, n)
	return err
}

// plainTarget reports whether a text can be the target of a link.
func plainTarget(target string) bool {
	return target != "" && len(target) <= maxPath && utf8.ValidString(target) && !strings.ContainsRune(target, 0)
}
