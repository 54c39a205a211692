package volume

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Place is where a path leads: a name in a directory, and the node there, nil
// if there is none. When Name is "." or "..", Node is the directory that it
// stands for, seen from Parent.
type Place struct {
	Parent *Node
	Name   string
	Node   *Node
	Slash  bool // the path ends in a slash: only a directory may be there
}

// Walk resolves a path from a directory, link by link, at most 40. The last
// component is followed only if follow is set or a slash comes after it. A
// missing last component is no error: Node is nil. It is one, ENOENT, when only
// a slash led there through a link: nothing is made through it.
//
// Errors: ENOENT for a missing parent or a directory that was removed,
// ENOTDIR, ELOOP, ENAMETOOLONG (name above 255 bytes, path above 4096),
// EILSEQ, EINVAL (empty, or with NUL), and [ErrEscape] for absolute paths, ".."
// above the root, and links that leave the volume.
func (o *Overlay) Walk(dir *Node, path string, follow bool) (Place, error) {
	if err := checkPath(path); err != nil {
		return Place{}, err
	}
	if path[0] == '/' {
		return Place{}, ErrEscape
	}
	if err := o.usableDir(dir); err != nil {
		return Place{}, err
	}
	for links, forced := 0, false; ; {
		name, rest := cutName(path)
		p := Place{Parent: dir, Name: name, Slash: rest != ""}
		final := strings.Trim(rest, "/") == ""
		if err := o.step(&p); err != nil {
			return Place{}, err
		}
		switch {
		case p.Node == nil && final && !forced:
			return p, nil
		case p.Node == nil:
			return Place{}, capabilities.ENOENT
		case p.Node.kind == Symlink && (!final || follow || p.Slash):
			if links++; links > maxLinks {
				return Place{}, capabilities.ELOOP
			}
			target, err := o.linkTarget(p.Node)
			if err != nil {
				return Place{}, err
			}
			forced = forced || (final && !follow)
			path = target + rest
			continue
		case p.Node.kind != Dir && rest != "":
			return Place{}, capabilities.ENOTDIR
		case final:
			return p, nil
		}
		dir, path = p.Node, strings.TrimLeft(rest, "/")
	}
}

// cutName splits a path after its first component; rest is empty or begins
// with a slash.
func cutName(path string) (name, rest string) {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// step finds the node of one component.
func (o *Overlay) step(p *Place) (err error) {
	switch {
	case p.Name == ".":
		p.Node = p.Parent
	case p.Name == ".." && p.Parent == &o.root:
		return ErrEscape
	case p.Name == "..":
		p.Node = p.Parent.parent
	case len(p.Name) > maxName:
		return capabilities.ENAMETOOLONG
	default:
		p.Node, err = o.child(p.Parent, p.Name)
	}
	return err
}

// linkTarget returns the target of a link that is about to be followed.
func (o *Overlay) linkTarget(n *Node) (string, error) {
	target, err := o.Readlink(n)
	switch {
	case err != nil:
		return "", err
	case target == "":
		return "", capabilities.ENOENT
	case target[0] == '/':
		return "", ErrEscape
	}
	return target, nil
}
