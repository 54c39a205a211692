package stored

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var space = SpaceOf("local", "notes", "data")

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// counted counts what is asked of a store, and can fail.
type counted struct {
	store.Store
	fault func(op string) error

	mu    sync.Mutex
	count map[string]int
	keys  map[string]int // how often each key was read
}

func newCounted() *counted {
	return &counted{Store: memstore.New(), count: map[string]int{}, keys: map[string]int{}}
}

func (c *counted) hit(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[op]++
	if c.fault != nil {
		return c.fault(op)
	}
	return nil
}

// reset forgets what was counted, and returns it.
func (c *counted) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.count
	c.count, c.keys = map[string]int{}, map[string]int{}
	return was
}

func (c *counted) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := c.hit("snapshot"); err != nil {
		return nil, err
	}
	s, err := c.Store.Snapshot(ctx)
	return countedSnapshot{s, c}, err
}

func (c *counted) PutBlob(ctx context.Context, data []byte) (store.Digest, error) {
	if err := c.hit("put"); err != nil {
		return store.Digest{}, err
	}
	return c.Store.PutBlob(ctx, data)
}

func (c *counted) Blob(ctx context.Context, d store.Digest) ([]byte, error) {
	if err := c.hit("blob"); err != nil {
		return nil, err
	}
	return c.Store.Blob(ctx, d)
}

type countedSnapshot struct {
	store.Snapshot
	c *counted
}

func (s countedSnapshot) Get(ctx context.Context, keys ...store.Key) ([]store.Entry, error) {
	if err := s.c.hit("get"); err != nil {
		return nil, err
	}
	s.c.mu.Lock()
	for _, k := range keys {
		s.c.keys[k.Name]++
	}
	s.c.mu.Unlock()
	return s.Snapshot.Get(ctx, keys...)
}

func (s countedSnapshot) Scan(ctx context.Context, r store.Range, limit int) ([]store.Entry, error) {
	if err := s.c.hit("scan"); err != nil {
		return nil, err
	}
	return s.Snapshot.Scan(ctx, r, limit)
}

// now returns the volume as the store has it now.
func now(t tester, s store.Store) *Tree {
	t.Helper()
	return New(t.Context(), Options{Reader: s.Snapshot, Blobs: s, Space: space, Now: at})
}

// at is a clock that stands still.
func at() time.Time { return time.Unix(1_700_000_000, 123).UTC() }

func ample() *volume.Budget { return &volume.Budget{Bytes: 256 << 20, Files: 100_000} }

// guest does what a program does, by path.
type guest struct{ *volume.Overlay }

func over(t tester, b volume.Base) guest {
	t.Helper()
	return guest{volume.New(b, volume.Options{Budget: ample(), Now: ticking()})}
}

// ticking returns a clock that goes on by a second whenever it is looked at.
func ticking() func() time.Time {
	var n int64
	return func() time.Time { n++; return time.Unix(1_600_000_000+n, 5).UTC() }
}

func (g guest) node(path string) (*volume.Node, error) {
	p, err := g.Walk(g.Root(), path, true)
	if err != nil {
		return nil, err
	}
	if p.Node == nil {
		return nil, capabilities.ENOENT
	}
	return p.Node, nil
}

// write writes at an offset of a file, which it makes if it is missing.
func (g guest) write(path string, data []byte, off int64) error {
	p, err := g.Walk(g.Root(), path, true)
	if err != nil {
		return err
	}
	n := p.Node
	if n == nil {
		if n, err = g.Create(p); err != nil {
			return err
		}
	}
	if err := g.Open(n); err != nil {
		return err
	}
	defer g.Release(n)
	_, err = g.WriteAt(n, data, off)
	return err
}

func (g guest) truncate(path string, size int64) error {
	n, err := g.node(path)
	if err != nil {
		return err
	}
	return g.Truncate(n, size)
}

func (g guest) read(path string) ([]byte, error) {
	n, err := g.node(path)
	if err != nil {
		return nil, err
	}
	info, err := g.Info(n)
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size)
	if _, err := g.ReadAt(n, b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

func (g guest) list(path string) error {
	n, err := g.node(path)
	if err != nil {
		return err
	}
	_, err = g.List(n)
	return err
}

func (g guest) rm(path string) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	return g.Remove(p)
}

func (g guest) mkdir(path string) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	return g.Mkdir(p)
}

func (g guest) mv(from, to string) error {
	p, err := g.Walk(g.Root(), from, false)
	if err != nil {
		return err
	}
	q, err := g.Walk(g.Root(), to, false)
	if err != nil {
		return err
	}
	return g.Rename(p, q)
}

func (g guest) touch(path string, at time.Time) error {
	n, err := g.node(path)
	if err != nil {
		return err
	}
	return g.SetTimes(n, at)
}

// change returns what the guest did as another process gets it.
func (g guest) change(t tester) *volume.Change {
	t.Helper()
	c, err := g.Change()
	must(t, err)
	return decoded(t, c)
}

func decoded(t tester, c *volume.Change) *volume.Change {
	t.Helper()
	b, err := json.Marshal(c)
	must(t, err)
	var d volume.Change
	must(t, json.Unmarshal(b, &d))
	return &d
}

// apply commits a change that was made on a tree.
func apply(ctx context.Context, s store.Store, tree *Tree, c *volume.Change) error {
	guards, ranges, writes, err := tree.Writes(ctx, c)
	if err != nil {
		return err
	}
	_, err = s.Commit(ctx, &store.Commit{ID: rand.Text(), Time: at(), Guards: guards, Ranges: ranges, Writes: writes})
	return err
}

// isConflict reports whether a change met another one, at the look or at the
// commit.
func isConflict(err error) bool {
	return errors.Is(err, volume.ErrConflict) || errors.Is(err, store.ErrConflict)
}

// planted returns a store whose volume has files; a name that ends in a slash is
// a directory.
func planted(t tester, tree map[string]string) *counted {
	t.Helper()
	s := newCounted()
	plant(t, s, tree)
	s.reset()
	return s
}

func plant(t tester, s store.Store, tree map[string]string) {
	t.Helper()
	base := now(t, s)
	g := over(t, base)
	for _, name := range sorted(tree) {
		for i := range name {
			if name[i] == '/' {
				if err := g.mkdir(name[:i]); err != nil && !errors.Is(err, capabilities.EEXIST) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if name[len(name)-1] != '/' {
			must(t, g.write(name, []byte(tree[name]), 0))
			must(t, g.truncate(name, int64(len(tree[name]))))
		}
	}
	must(t, apply(t.Context(), s, base, g.change(t)))
}

func sorted(tree map[string]string) []string {
	var names []string
	for name := range tree {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// seen is all that a base shows of a path.
type seen struct {
	volume.Info
	Stamp   volume.Stamp
	Content string
	Link    error
	List    []volume.Entry
}

// image returns all that a base shows, by path.
func image(t tester, b volume.Base) map[string]seen {
	t.Helper()
	all := map[string]seen{}
	var visit func(path string)
	visit = func(path string) {
		info, st, err := b.Lstat(path)
		must(t, err)
		st.Version, st.Inode, st.Changed, st.Digest = 0, 0, time.Time{}, "" // they tell of the base
		s := seen{Info: info, Stamp: st}
		_, s.Link = b.Readlink(path)
		if info.Kind == volume.Dir {
			s.Size = 0 // of no meaning
			s.List, err = b.ReadDir(path)
			must(t, err)
			if len(s.List) == 0 {
				s.List = nil
			}
			all[path] = s
			for _, e := range s.List {
				visit(join(path, e.Name))
			}
			return
		}
		f, err := b.Open(path)
		must(t, err)
		data := make([]byte, info.Size+1)
		n, err := f.ReadAt(data, 0)
		if !errors.Is(err, io.EOF) || int64(n) != info.Size {
			t.Fatalf("%s: read %d of %d bytes, %v", path, n, info.Size, err)
		}
		must(t, f.Close())
		s.Content = string(data[:n])
		all[path] = s
	}
	visit(".")
	return all
}
