package volume

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	newFileMode = 0o644
	newDirMode  = 0o755

	// nodeCost is what a node that a call made holds of its budget, in bytes
	// besides the name.
	nodeCost = 512
)

// Node is a file, directory or link of an [Overlay]. It stays the same when it
// is renamed, and stays usable while it is open after it was removed.
type Node struct {
	parent  *Node // nil for the root
	name    string
	base    string // path in the base, empty if the call made it
	last    string // the path it had when it was removed
	kind    Kind
	removed bool
	opens   int
	held    cost
	counted bool // in the budget's files
	whole   bool // a directory that can be moved, see Overlay.whole

	mode  fs.FileMode // its own; see Overlay.mode
	mtime time.Time
	timed bool // the guest chose mtime

	renamed bool // of a directory: names in it were made or taken away, at mtime

	children map[string]*Node // of a directory: looked up or changed; nil: known to be absent
	most     int              // names that children has had room for

	target string // of a link, once it was read

	body     body
	baseSize int64
	dirty    bool // the content was written
	content  Content
}

// Kind returns the type of the node.
func (n *Node) Kind() Kind { return n.kind }

func (n *Node) put(name string, child *Node) {
	if n.children == nil {
		n.children = map[string]*Node{}
	}
	n.children[name] = child
	n.most = max(n.most, len(n.children))
}

// forget drops a name. A map keeps the memory of what is deleted from it: it is
// made anew when most is gone.
func (n *Node) forget(name string) {
	delete(n.children, name)
	if n.most < 16 || len(n.children) > n.most/4 {
		return
	}
	left := make(map[string]*Node, len(n.children))
	maps.Copy(left, n.children)
	n.children, n.most = left, len(left)
}

// within reports whether n is dir or below it.
func (n *Node) within(dir *Node) bool {
	for ; n != nil; n = n.parent {
		if n == dir {
			return true
		}
	}
	return false
}

// child returns the node of a name in a directory, nil if there is none.
func (o *Overlay) child(dir *Node, name string) (*Node, error) {
	if n, ok := dir.children[name]; ok {
		return n, nil
	}
	if dir.base == "" || o.notes.unlisted(dir.base, name) {
		return nil, nil
	}
	name = strings.Clone(name) // the guest's path is longer, perhaps much
	path := join(dir.base, name)
	o.deep = o.deep || len(path) > maxPath
	info, ok, err := o.notes.look(path)
	if err != nil {
		return nil, err
	}
	var n *Node
	if ok {
		n = &Node{parent: dir, name: name, base: path, kind: info.Kind, mode: info.Mode, mtime: info.ModTime}
		n.body = body{keep: info.Size, size: info.Size}
		n.baseSize = info.Size
	}
	dir.put(name, n)
	return n, nil
}

// entries returns the names of a directory, sorted, without inode numbers.
func (o *Overlay) entries(dir *Node) ([]Entry, error) {
	var list []Entry
	if dir.base != "" {
		old, err := o.notes.list(dir.base)
		if err != nil {
			return nil, err
		}
		list = slices.Grow(list, len(old))
		for _, e := range old {
			if _, known := dir.children[e.Name]; !known {
				list = append(list, e)
			}
		}
	}
	for name, n := range dir.children {
		if n != nil {
			list = append(list, Entry{Name: name, Kind: n.kind})
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
