// Package stored keeps the tree of a volume in a store: a managed volume.
//
// A path has an entry: kind and mode and, of a file, size and modification time.
// What a file holds is at a key of its own, because who lists a directory reads
// its entries: 64 KiB at most are kept as they are, more as pieces of 256 KiB by
// their digest. Pieces never change, so that a file with one changed byte shares
// the others with what it was, and a file that is moved takes all with it.
//
// The modification time of a directory is at a key of its own too: two calls that
// put different files into it do not conflict.
//
// A volume holds files and directories. Links are made by no tool, and [Import]
// refuses them.
//
// # What conflicts
//
// What a [Tree] reads it reads in one snapshot. The stamp of a path has the
// version of its entry: it is another one as soon as anything about the file was
// written since, and of a directory, when it was made anew. A directory that was
// listed conflicts when it has gained or lost a name, or a name has another kind.
package stored

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Options of a [Tree]. Without Reader and Blobs nothing can be read.
type Options struct {
	// Reader returns the snapshot of the call. It is asked for once, when something
	// is read.
	Reader func(context.Context) (store.Snapshot, error)
	Blobs  store.Blobs
	Space  store.Space      // see [SpaceOf]
	Now    func() time.Time // the time of what a change makes without saying when; nil: time.Now
}

// At returns a Reader that has a snapshot already.
func At(s store.Snapshot) func(context.Context) (store.Snapshot, error) {
	return func(context.Context) (store.Snapshot, error) { return s, nil }
}

// Tree is a volume that is kept in a store, as it was at one moment. It is safe
// for concurrent use.
type Tree struct {
	ctx     context.Context // of the call: package volume's interfaces have none
	options Options

	mu       sync.Mutex // held while the store is asked
	snapshot store.Snapshot
	cache    cache
}

var (
	_ volume.Base   = (*Tree)(nil)
	_ volume.Lister = (*Tree)(nil)
)

// errUnset: a tree without options.
var errUnset = errors.New("stored volume: no store")

// New returns the volume of a space. When ctx ends, reading it fails.
func New(ctx context.Context, o Options) *Tree { return &Tree{ctx: ctx, options: o} }

// Lstat returns what is at a path. The stamp of the root has no version: it is
// always there, with mode 0755.
func (t *Tree) Lstat(name string) (volume.Info, volume.Stamp, error) {
	n, err := t.node(t.ctx, name)
	switch {
	case err != nil:
		return volume.Info{}, volume.Stamp{}, err
	case !n.exists:
		return volume.Info{}, volume.Stamp{}, t.absent(t.ctx, name)
	}
	return n.info(name), n.stamp(), nil
}

// absent returns why there is nothing at a path: ENOENT, or ENOTDIR below a
// file.
func (t *Tree) absent(ctx context.Context, path string) error {
	for dir, _ := split(path); dir != "."; dir, _ = split(dir) {
		n, err := t.node(ctx, dir)
		switch {
		case err != nil:
			return err
		case n.exists && n.kind != volume.Dir:
			return capabilities.ENOTDIR
		case n.exists:
			return capabilities.ENOENT
		}
	}
	return capabilities.ENOENT
}

// ReadDir returns the entries of a directory, sorted by name.
func (t *Tree) ReadDir(name string) ([]volume.Entry, error) {
	list, err := t.list(t.ctx, name)
	return slices.Clone(list), err
}

// List is ReadDir. Nothing is ever left out.
func (t *Tree) List(name string) (list []volume.Entry, hidden bool, err error) {
	list, err = t.ReadDir(name)
	return list, false, err
}

// Readlink returns EINVAL for what is there: it is no link.
func (t *Tree) Readlink(name string) (string, error) {
	if _, _, err := t.Lstat(name); err != nil {
		return "", err
	}
	return "", capabilities.EINVAL
}

// Open opens a file for reading. What it holds is read as it is asked for, one
// piece at a time. EISDIR for a directory.
func (t *Tree) Open(name string) (volume.Content, error) {
	return t.open(t.ctx, name)
}

func (t *Tree) open(ctx context.Context, name string) (*file, error) {
	n, err := t.node(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case !n.exists:
		return nil, t.absent(ctx, name)
	case n.kind == volume.Dir:
		return nil, capabilities.EISDIR
	}
	c, err := t.content(ctx, name, n.size)
	if err != nil {
		return nil, err
	}
	return &file{ctx: ctx, blobs: t.options.Blobs, size: n.size, content: c, at: -1}, nil
}

// reader returns the snapshot; the tree is locked.
func (t *Tree) reader(ctx context.Context) (store.Snapshot, error) {
	if t.snapshot != nil {
		return t.snapshot, nil
	}
	if t.options.Reader == nil {
		return nil, errUnset
	}
	s, err := t.options.Reader(ctx)
	if err != nil {
		return nil, err
	}
	t.snapshot = s
	return s, nil
}

func (t *Tree) key(name string) store.Key { return store.Key{Space: t.options.Space, Name: name} }

func (t *Tree) now() time.Time {
	if t.options.Now != nil {
		return t.options.Now()
	}
	return time.Now()
}

// failed returns an error of the store as a volume has it. What is kept no longer
// was replaced long ago.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, store.ErrGone) {
		return fmt.Errorf("%w: %w", volume.ErrConflict, err)
	}
	return fmt.Errorf("%w: %w", capabilities.EIO, err)
}
