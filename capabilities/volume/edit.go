package volume

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Create makes an empty regular file, mode 0644 or that of the file which the
// base has there. EEXIST, EISDIR after a slash, EACCES for names that the host
// reserves, ENOENT in a directory that was removed, a [*LimitError].
func (o *Overlay) Create(p Place) (*Node, error) {
	if p.Node == nil && p.Slash {
		return nil, capabilities.EISDIR
	}
	return o.make(p, &Node{kind: File, mode: newFileMode})
}

// Mkdir makes an empty directory, mode 0755 or that of the directory which the
// base has there. The errors are those of Create.
func (o *Overlay) Mkdir(p Place) error {
	_, err := o.make(p, &Node{kind: Dir, mode: newDirMode})
	return err
}

func (o *Overlay) make(p Place, n *Node) (*Node, error) {
	if p.Node != nil {
		return nil, capabilities.EEXIST
	}
	if err := o.vacant(p); err != nil {
		return nil, err
	}
	c := cost{bytes: int64(nodeCost + len(p.Name)), files: 1}
	if err := o.budget.take(c); err != nil {
		return nil, err
	}
	o.files++
	n.held, n.counted, n.dirty = c, true, true
	n.mtime = o.now()
	o.attach(n, p.Parent, p.Name)
	return n, nil
}

// vacant refuses a place where nothing can be put.
func (o *Overlay) vacant(p Place) error {
	if err := o.usableDir(p.Parent); err != nil {
		return err
	}
	if err := checkName(o.Path(p.Parent), p.Name); err != nil {
		return err
	}
	switch there, err := o.child(p.Parent, p.Name); {
	case err != nil:
		return err
	case there != p.Node:
		return capabilities.EEXIST
	}
	return nil
}

// attach puts a node in a directory.
func (o *Overlay) attach(n, dir *Node, name string) {
	name = strings.Clone(name) // the guest's path is longer, perhaps much
	n.parent, n.name = dir, name
	dir.put(name, n)
	o.touch(dir)
}

// detach takes a node out of its directory. That there is nothing needs to be
// remembered only of paths that were seen in the base, which cost something: a
// guest can use any number of other names.
func (o *Overlay) detach(n *Node) {
	dir := n.parent
	_, seen := o.notes.stamps[join(dir.base, n.name)]
	if dir.base != "" && seen {
		dir.put(n.name, nil)
	} else {
		dir.forget(n.name)
	}
	o.touch(dir)
}

// touch notes that the names of a directory changed.
func (o *Overlay) touch(dir *Node) {
	dir.mtime, dir.timed, dir.renamed = o.now(), false, true
	o.version++
}

// Remove removes a file, a link or an empty directory: ENOTEMPTY, also for
// entries that cannot be shown. ENOENT, EBUSY for the root, EINVAL for "." and
// "..", a [*LimitError].
func (o *Overlay) Remove(p Place) error {
	if p.Node != &o.root && (p.Name == "." || p.Name == "..") {
		return capabilities.EINVAL
	}
	if err := o.movable(p); err != nil {
		return err
	}
	if err := o.empty(p.Node); err != nil {
		return err
	}
	if err := o.count(p.Node); err != nil {
		return err
	}
	return o.remove(p.Node)
}

// movable refuses a place from which nothing can be taken.
func (o *Overlay) movable(p Place) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case p.Node == nil:
		return capabilities.ENOENT
	case p.Node == &o.root, p.Name == ".", p.Name == "..":
		return capabilities.EBUSY
	case p.Parent.removed || p.Parent.children[p.Name] != p.Node:
		return capabilities.ENOENT
	}
	return nil
}

// empty refuses a directory that has entries.
func (o *Overlay) empty(n *Node) error {
	if n.kind != Dir {
		return nil
	}
	empty, err := o.vacantDir(n)
	if err == nil && !empty {
		err = capabilities.ENOTEMPTY
	}
	return err
}

// Empty reports whether a directory has no entries, those that cannot be shown
// included. That is no read of the directory, but what others put there or take
// away conflicts all the same. ENOTDIR; ENOENT for a directory that was removed.
func (o *Overlay) Empty(n *Node) (bool, error) {
	if err := o.usableDir(n); err != nil {
		return false, err
	}
	return o.vacantDir(n)
}

func (o *Overlay) vacantDir(n *Node) (bool, error) {
	for _, child := range n.children {
		if child != nil {
			return false, nil
		}
	}
	if n.base == "" {
		return true, nil
	}
	l, err := o.notes.listing(n.base)
	if err != nil || l.more {
		return false, err
	}
	for _, e := range l.entries {
		if _, known := n.children[e.Name]; !known {
			return false, nil
		}
	}
	return true, nil
}

// whole refuses to move what would not arrive as it is: a directory with
// entries, at any depth, that cannot be shown, and links whose targets cannot.
func (o *Overlay) whole(n *Node) error {
	if n.kind == Symlink {
		_, err := o.Readlink(n)
		return err
	}
	if n.kind != Dir || n.whole {
		return nil
	}
	list, err := o.entries(n)
	if err != nil {
		return err
	}
	if n.base != "" && o.notes.lists[n.base].more {
		return capabilities.EXDEV
	}
	for _, e := range list {
		if e.Kind != Dir && e.Kind != Symlink {
			continue
		}
		child, err := o.child(n, e.Name)
		if err == nil && child != nil {
			err = o.whole(child)
		}
		if err != nil {
			return err
		}
	}
	n.whole = true // what is put into it later was made by the call, or is whole
	return nil
}

// remove takes a node out of the tree. While it is open its last path is held,
// which may be long.
func (o *Overlay) remove(n *Node) error {
	last := o.Path(n)
	if n.opens > 0 {
		c := cost{seen: int64(len(last))}
		if err := o.budget.take(c); err != nil {
			return err
		}
		n.held = n.held.plus(c)
	}
	n.last = last
	o.detach(n)
	n.removed, n.children = true, nil
	if n.opens == 0 {
		o.drop(n)
	}
	return nil
}

// drop frees what a removed node holds. That a path of the base was removed
// goes on counting as a change.
func (o *Overlay) drop(n *Node) {
	freed := n.held
	if n.base != "" {
		freed.files = 0
	}
	o.budget.give(freed)
	o.files -= freed.files
	n.held = n.held.plus(freed.negative())
	n.body = body{}
}

// Rename moves a node, as POSIX rename does: over a file or link, a directory
// over an empty directory; onto itself it does nothing. ENOENT, EISDIR,
// ENOTDIR, ENOTEMPTY, EINVAL for a directory into itself, EBUSY for the root,
// "." and "..", EACCES for names that the host reserves, EXDEV for a directory
// below which there are entries that cannot be shown, EILSEQ for links whose
// targets cannot, a [*LimitError].
func (o *Overlay) Rename(from, to Place) error {
	if err := o.movable(from); err != nil {
		return err
	}
	if to.Node == &o.root || to.Name == "." || to.Name == ".." {
		return capabilities.EBUSY
	}
	if err := o.vacant(to); err != nil {
		return err
	}
	n, old := from.Node, to.Node
	if n == old {
		return nil
	}
	if err := o.replaceable(n, to); err != nil {
		return err
	}
	if err := o.whole(n); err != nil {
		return err
	}
	if err := o.count(n); err != nil {
		return err
	}
	if old != nil {
		if err := o.count(old); err != nil {
			return err
		}
	}
	if err := o.lengthen(n, to.Name); err != nil {
		return err
	}
	if old != nil {
		if err := o.remove(old); err != nil {
			return err
		}
	}
	o.detach(n)
	o.attach(n, to.Parent, to.Name)
	return nil
}

// lengthen charges a node that the call made for another name.
func (o *Overlay) lengthen(n *Node, name string) error {
	if n.base != "" {
		return nil
	}
	c := cost{bytes: int64(len(name) - len(n.name))}
	if err := o.budget.take(c); err != nil {
		return err
	}
	n.held = n.held.plus(c)
	return nil
}

// replaceable refuses to put a node where it cannot replace what is there.
func (o *Overlay) replaceable(n *Node, to Place) error {
	if n.kind == Dir && to.Parent.within(n) {
		return capabilities.EINVAL
	}
	switch old := to.Node; {
	case old == nil && to.Slash && n.kind != Dir:
		return capabilities.ENOTDIR
	case old == nil:
		return nil
	case n.within(old):
		return capabilities.ENOTEMPTY
	case n.kind == Dir && old.kind != Dir:
		return capabilities.ENOTDIR
	case n.kind != Dir && old.kind == Dir:
		return capabilities.EISDIR
	default:
		return o.empty(old)
	}
}
