package stored

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const (
	// maxNodes bounds how many paths and names are remembered, and maxContents how
	// many bytes of contents. Beyond it all are forgotten and read again.
	maxNodes    = 64 << 10
	maxContents = 4 << 20

	// pageSize is how many keys are asked for at once.
	pageSize = 500
)

// node is what the snapshot has at a path.
type node struct {
	entry
	exists  bool
	version store.Version
	timed   bool // the time is known: of a directory it is at another key
}

func (n node) info(path string) volume.Info {
	return volume.Info{Kind: n.kind, Size: n.size, Mode: n.mode, ModTime: n.time, Inode: volume.InodeOf(path)}
}

func (n node) stamp() volume.Stamp {
	if !n.exists {
		return volume.Stamp{}
	}
	st := volume.Stamp{Exists: true, Kind: n.kind, Mode: n.mode, Version: uint64(n.version)}
	if n.kind != volume.Dir {
		st.Size, st.ModTime = n.size, n.time
	}
	return st
}

// cache remembers what was read of a snapshot, which does not change.
type cache struct {
	nodes    map[string]node
	lists    map[string][]volume.Entry
	contents map[string]content
	names    int // in lists
	bytes    int // of contents
}

func (c *cache) put(path string, n node) {
	if len(c.nodes)+c.names >= maxNodes {
		c.nodes, c.lists, c.names = nil, nil, 0
	}
	if c.nodes == nil {
		c.nodes = map[string]node{}
	}
	c.nodes[path] = n
}

func (c *cache) putList(dir string, list []volume.Entry) {
	if c.lists == nil {
		c.lists = map[string][]volume.Entry{}
	}
	c.lists[dir] = list
	c.names += len(list)
}

func (c *cache) putContent(path string, v content) {
	if v.bytes() > maxContents/4 {
		return
	}
	if c.bytes += v.bytes(); c.bytes > maxContents || c.contents == nil {
		c.contents, c.bytes = map[string]content{}, v.bytes()
	}
	c.contents[path] = v
}

// node returns what is at a path. A path that no guest could name has nothing.
func (t *Tree) node(ctx context.Context, path string) (node, error) {
	if !volume.ValidPath(path) {
		return node{}, nil
	}
	list, err := t.nodes(ctx, []string{path})
	if err != nil {
		return node{}, err
	}
	return list[0], nil
}

// nodes returns what is at paths, in their order.
func (t *Tree) nodes(ctx context.Context, paths []string) ([]node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := make([]node, len(paths))
	for i, part := 0, []string(nil); i < len(paths); i += len(part) {
		part = paths[i:min(i+pageSize, len(paths))]
		if err := t.load(ctx, part, found[i:]); err != nil {
			return nil, failed(err)
		}
	}
	return found, nil
}

// load fills in what is at a few paths, from the cache or the store, which it
// asks once; the tree is locked.
func (t *Tree) load(ctx context.Context, paths []string, found []node) error {
	var keys []store.Key
	for i, path := range paths {
		n, known := t.cache.nodes[path]
		found[i] = n
		switch {
		case known && n.timed:
		case known, path == ".":
			keys = append(keys, t.key(timeName(path)))
		default:
			keys = append(keys, t.key(entryName(path)), t.key(timeName(path)))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	got, err := t.get(ctx, keys)
	if err != nil {
		return err
	}
	for i, path := range paths {
		if found[i].timed {
			continue
		}
		if !found[i].exists && path != "." {
			if found[i], err = decodeNode(path, got[entryName(path)]); err != nil {
				return err
			}
		}
		if err := found[i].clock(path, got[timeName(path)]); err != nil {
			return err
		}
		t.cache.put(path, found[i])
	}
	return nil
}

// clock completes a node with its directory's time.
func (n *node) clock(path string, e store.Entry) error {
	if path == "." {
		*n = node{exists: true, entry: entry{kind: volume.Dir, mode: volume.RootMode}}
	}
	if n.kind == volume.Dir {
		n.time = time.Unix(0, 0).UTC()
		if e.Version != 0 {
			at, err := decodeTime(e.Value)
			if err != nil {
				return fmt.Errorf("time of %q: %w", path, err)
			}
			n.time = at
		}
	}
	n.timed = true
	return nil
}

// decodeNode returns what an entry says; the time of a directory is not known.
func decodeNode(path string, e store.Entry) (node, error) {
	if e.Version == 0 {
		return node{}, nil
	}
	v, err := decodeEntry(e.Value)
	if err != nil {
		return node{}, fmt.Errorf("entry of %q: %w", path, err)
	}
	return node{exists: true, version: e.Version, entry: v, timed: v.kind != volume.Dir}, nil
}

// get returns the entries of keys by their names; the tree is locked.
func (t *Tree) get(ctx context.Context, keys []store.Key) (map[string]store.Entry, error) {
	s, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	got := make(map[string]store.Entry, len(list))
	for _, e := range list {
		got[e.Name] = e
	}
	return got, nil
}

// list returns the entries of a directory, sorted by name. They are the cache's.
func (t *Tree) list(ctx context.Context, dir string) ([]volume.Entry, error) {
	switch n, err := t.node(ctx, dir); {
	case err != nil:
		return nil, err
	case !n.exists:
		return nil, t.absent(ctx, dir)
	case n.kind != volume.Dir:
		return nil, capabilities.ENOTDIR
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, ok := t.cache.lists[dir]; ok {
		return list, nil
	}
	list, err := t.scan(ctx, dir)
	if err != nil {
		return nil, failed(err)
	}
	t.cache.putList(dir, list)
	return list, nil
}

// scan reads a directory, page by page; the tree is locked.
func (t *Tree) scan(ctx context.Context, dir string) ([]volume.Entry, error) {
	s, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	list := []volume.Entry{}
	prefix := prefixOf(dir)
	for r := store.Prefix(t.options.Space, prefix); ; {
		page, err := s.Scan(ctx, r, pageSize)
		if err != nil {
			return nil, err
		}
		list = slices.Grow(list, len(page))
		for _, e := range page {
			name := strings.TrimPrefix(e.Name, prefix)
			path := join(dir, name)
			n, err := decodeNode(path, e)
			if err != nil {
				return nil, err
			}
			if _, known := t.cache.nodes[path]; !known {
				t.cache.put(path, n)
			}
			list = append(list, volume.Entry{Name: name, Kind: n.kind, Inode: volume.InodeOf(path)})
		}
		if len(page) < pageSize {
			return list, nil
		}
		r.From = page[len(page)-1].Name + nul
	}
}

// content returns what a file holds, which has a size.
func (t *Tree) content(ctx context.Context, path string, size int64) (content, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.cache.contents[path]; ok {
		return c, nil
	}
	name := contentName(path)
	got, err := t.get(ctx, []store.Key{t.key(name)})
	if err != nil {
		return content{}, failed(err)
	}
	c, err := decodeContent(got[name].Value)
	if err == nil && !c.fits(size) {
		err = errForm
	}
	if err != nil {
		return content{}, failed(fmt.Errorf("content of %q: %w", path, err))
	}
	t.cache.putContent(path, c)
	return c, nil
}
