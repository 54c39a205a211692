package volume

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
)

// relation is that of a new content to an old one.
type relation uint8

const (
	different relation = iota
	same
	longer // the old content is a prefix
)

// compare returns the relation of a node's content to the file of the base at
// a path, of the given size.
func (o *Overlay) compare(n *Node, path string, size int64) (relation, error) {
	if n.body.size < size {
		return different, nil
	}
	equal, err := o.prefixed(n, path, size)
	switch {
	case err != nil && n.body.keep == 0 && unreadable(err):
		return different, nil // no old byte is part of the new content
	case err != nil:
		return different, err
	case !equal:
		return different, nil
	case n.body.size > size:
		return longer, nil
	}
	return same, nil
}

func unreadable(err error) bool {
	return errors.Is(err, capabilities.EACCES) || errors.Is(err, capabilities.EPERM)
}

// prefixed reports whether a node's content begins with the size bytes of a
// file of the base. Ranges that come from that very file are not read.
func (o *Overlay) prefixed(n *Node, path string, size int64) (bool, error) {
	defer o.settle(n)
	src, own := o.source(n), n.base == path
	old := src
	if !own {
		c, err := o.openBase(path)
		if err != nil {
			return false, err
		}
		defer c.Close()
		old = func() (io.ReaderAt, error) { return c, nil }
	}
	was := body{keep: size, size: size}
	var a, b [chunkSize]byte
	for off := int64(0); off < size; off += chunkSize {
		end := min(off+chunkSize, size)
		if _, held := n.body.chunks[off/chunkSize]; own && !held && end <= n.body.keep {
			continue
		}
		if err := o.live(); err != nil {
			return false, err
		}
		x, y := a[:end-off], b[:end-off]
		if err := n.body.readAt(src, x, off); err != nil {
			return false, err
		}
		if err := was.readAt(old, y, off); err != nil {
			return false, err
		}
		if !bytes.Equal(x, y) {
			return false, nil
		}
	}
	return true, nil
}

// extents returns what a node's chunks change in the kept part of its base,
// and what they add. The data is the caller's.
func (o *Overlay) extents(n *Node) ([]Extent, error) {
	defer o.settle(n)
	var list []Extent
	var buf [chunkSize]byte
	for _, i := range slices.Sorted(maps.Keys(n.body.chunks)) {
		data := n.body.chunks[i]
		old := buf[:min(n.body.inherited(i), len(data))]
		if err := n.body.readBase(o.source(n), old, i*chunkSize); err != nil {
			return nil, err
		}
		from, to := trim(data, old)
		if from < to {
			list = append(list, Extent{Offset: i*chunkSize + int64(from), Data: bytes.Clone(data[from:to])})
		}
	}
	return list, nil
}

// trim returns the range of data outside which it equals old, its beginning.
func trim(data, old []byte) (from, to int) {
	for from < len(old) && data[from] == old[from] {
		from++
	}
	to = len(data)
	for len(old) == len(data) && to > from && data[to-1] == old[to-1] {
		to--
	}
	return from, to
}
