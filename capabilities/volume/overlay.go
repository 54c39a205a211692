package volume

import (
	"errors"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// Options of an [Overlay]. The zero value allows no write.
type Options struct {
	Budget *Budget          // shared by the volumes of a call; nil: one of its own that allows no change
	Now    func() time.Time // the call's clock, for the times of what it writes; nil: time.Now
	// Live is asked again and again while contents are compared, which takes as long
	// as files are: an error ends that, and is the difference's. nil: it never ends.
	Live func() error
}

// Overlay is one call's view of a base: what was there, and on top of it what
// the call did. Nothing reaches the base. It is for one goroutine at a time.
//
// What its methods return for a guest's mistakes is a [capabilities.Errno].
// Other errors: [ErrEscape], a [*LimitError], and [ErrConflict] when a file of
// the base turns out to have changed while it was read.
type Overlay struct {
	base   Base
	budget *Budget
	clock  func() time.Time
	live   func() error
	steps  time.Duration // of the base's times
	root   Node
	notes  notes

	open   map[*Node]struct{} // nodes that hold a content of the base
	read   map[string]int64   // bytes read, by path in the base
	listed map[string]struct{}
	deep   bool // a path was met that is longer than a change can name

	files   int64  // what the nodes hold of the budget's files
	settled int64  // what the last Change holds of them besides
	version int    // counts changes
	cached  *delta // the difference at one version
	told    cost   // what it holds of the budget
	closed  bool
}

// New returns a view of base in which nothing is changed. A nil base is an
// empty tree.
func New(base Base, o Options) *Overlay {
	if base == nil {
		base = Mem()
	}
	clock := o.Now
	if clock == nil {
		clock = time.Now
	}
	live := o.Live
	if live == nil {
		live = func() error { return nil }
	}
	budget := o.Budget
	if budget == nil {
		budget = &Budget{}
	}
	return &Overlay{
		base:   base,
		budget: budget,
		clock:  clock,
		live:   live,
		steps:  stepOf(base),
		root:   Node{name: ".", base: ".", kind: Dir, mode: newDirMode},
		notes:  notes{base: base, budget: budget},
	}
}

// stepOf returns the step in which a base counts times.
func stepOf(b Base) time.Duration {
	if s, ok := b.(Stepper); ok {
		return max(s.TimeStep(), 1)
	}
	return 1
}

// Overlay returns o, for who asks for an overlay that may still have to be made.
func (o *Overlay) Overlay() *Overlay { return o }

// Root returns the root directory.
func (o *Overlay) Root() *Node { return &o.root }

// Path returns the slash path of a node below the root, "." for the root; of a
// removed node its last path.
func (o *Overlay) Path(n *Node) string {
	switch {
	case n.parent == nil:
		return "."
	case n.removed:
		return n.last
	}
	size := len(n.name)
	for d := n.parent; d.parent != nil; d = d.parent {
		size += len(d.name) + 1
	}
	path := make([]byte, size)
	for d := n; d.parent != nil; d = d.parent {
		size -= len(d.name)
		copy(path[size:], d.name)
		if size > 0 {
			size--
			path[size] = '/'
		}
	}
	return string(path)
}

// Info describes a node. The inode number follows from its path, the mode is
// the one that it would have after a commit.
func (o *Overlay) Info(n *Node) (Info, error) {
	if err := o.loadRoot(n); err != nil {
		return Info{}, err
	}
	path := o.Path(n)
	mode, err := o.mode(n, path)
	if err != nil {
		return Info{}, err
	}
	info := Info{Kind: n.kind, Mode: mode, ModTime: n.mtime, Inode: inodeOf(path)}
	if n.kind == File || n.kind == Symlink {
		info.Size = n.body.size
	}
	return info, nil
}

// loadRoot looks at the base's root when its own attributes are asked for.
func (o *Overlay) loadRoot(n *Node) error {
	if n != &o.root {
		return nil
	}
	if _, known := o.notes.stamps["."]; known {
		return nil
	}
	info, ok, err := o.notes.look(".")
	switch {
	case err != nil:
		return err
	case !ok || info.Kind != Dir:
		return capabilities.ENOENT
	}
	n.mode = info.Mode
	if n.mtime.IsZero() {
		n.mtime = info.ModTime
	}
	return nil
}

// mode returns the permission bits of a node. What takes the place of a file or
// directory of the base takes its mode, so that no path of the base changes it.
func (o *Overlay) mode(n *Node, path string) (fs.FileMode, error) {
	if n.removed || n.base == path || (n.kind != File && n.kind != Dir) {
		return n.mode, nil
	}
	old, err := o.notes.at(path)
	if err != nil {
		return 0, err
	}
	if old.Exists && old.Kind == n.kind {
		return old.Mode, nil
	}
	return n.mode, nil
}

// List returns the entries of a directory, sorted by name. ENOTDIR; ENOENT for
// a directory that was removed.
func (o *Overlay) List(n *Node) ([]Entry, error) {
	if err := o.usableDir(n); err != nil {
		return nil, err
	}
	list, err := o.entries(n)
	if err != nil {
		return nil, err
	}
	if n.base != "" {
		lazymap.Put(&o.listed, n.base, struct{}{})
	}
	dir := o.Path(n)
	for i := range list {
		list[i].Inode = inodeOf(join(dir, list[i].Name))
	}
	return list, nil
}

// usableDir refuses what is no directory, or one that was removed.
func (o *Overlay) usableDir(n *Node) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case n.kind != Dir:
		return capabilities.ENOTDIR
	case n.removed:
		return capabilities.ENOENT
	}
	return nil
}

// Readlink returns the target of a link. EINVAL for anything else, EILSEQ for
// a target that is no UTF-8.
func (o *Overlay) Readlink(n *Node) (string, error) {
	if n.kind != Symlink {
		return "", capabilities.EINVAL
	}
	if n.target != "" {
		return n.target, nil
	}
	target, err := o.base.Readlink(n.base)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(target) {
		return "", capabilities.EILSEQ
	}
	if err := o.budget.take(cost{seen: int64(len(target))}); err != nil {
		return "", err
	}
	n.target = target
	return target, nil
}

// Open retains the node: its content stays readable after removal, until
// [Overlay.Release]. EACCES for special files, ELOOP for links.
func (o *Overlay) Open(n *Node) error {
	switch {
	case o.closed:
		return capabilities.EBADF
	case n.kind == Special:
		return capabilities.EACCES
	case n.kind == Symlink:
		return capabilities.ELOOP
	}
	n.opens++
	return nil
}

// Release ends what [Overlay.Open] began. The last one gives back the base's
// descriptor and, of a removed node, the memory.
func (o *Overlay) Release(n *Node) {
	if n.opens == 0 {
		return
	}
	n.opens--
	o.settle(n)
	if n.opens == 0 && n.removed {
		o.drop(n)
	}
}

// source returns where the content of a node's base file is read. It is opened
// once, when it is first needed.
func (o *Overlay) source(n *Node) source {
	return func() (io.ReaderAt, error) {
		if o.closed {
			return nil, capabilities.EBADF
		}
		if n.content == nil {
			c, err := o.openBase(n.base)
			if err != nil {
				return nil, err
			}
			n.content = c
			lazymap.Put(&o.open, n, struct{}{})
		}
		return n.content, nil
	}
}

// openBase opens a file that the base had when the call looked. One that is not
// there any more has been taken away by somebody else: [ErrConflict].
func (o *Overlay) openBase(path string) (Content, error) {
	c, err := o.base.Open(path)
	for _, gone := range []error{capabilities.ENOENT, capabilities.ENOTDIR, capabilities.EISDIR} {
		if errors.Is(err, gone) {
			return nil, ErrConflict
		}
	}
	return c, err
}

// settle closes the content of a node that nobody holds open.
func (o *Overlay) settle(n *Node) {
	if n.opens == 0 && n.content != nil {
		_ = n.content.Close() // it was only read
		n.content = nil
		delete(o.open, n)
	}
}

// Close releases the base files that the overlay holds open. It does not
// change the base. It may be called again; other methods then fail with EBADF.
func (o *Overlay) Close() error {
	o.closed = true
	var errs []error
	for n := range o.open {
		errs = append(errs, n.content.Close())
		n.content = nil
	}
	clear(o.open)
	return errors.Join(errs...)
}
