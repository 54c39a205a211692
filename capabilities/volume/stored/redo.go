package stored

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Writes returns what a commit has to demand and write for a change of this
// volume. The change may come from another process: the tree is then one of a
// snapshot that was taken since.
//
// What the pieces of large files hold is put into the store at once, so that it
// is durable before the commit; what is not committed then is pruned there. No
// content is read or written for what is only moved.
//
// Errors: [volume.ErrConflict] when the snapshot already shows that a guard does
// not hold; EINVAL for a change that no overlay makes over such a tree, one with
// links among them; EFBIG; and those of the store.
func (t *Tree) Writes(ctx context.Context, c *volume.Change) (guards []store.Guard, ranges []store.RangeGuard, writes []store.Write, err error) {
	if err := c.Valid(); err != nil {
		return nil, nil, nil, fmt.Errorf("volume change: %w", err)
	}
	r := newRedo(t, c)
	if err := r.do(ctx); err != nil {
		return nil, nil, nil, fmt.Errorf("volume change: %w", err)
	}
	r.sort()
	for _, name := range slices.Sorted(maps.Keys(r.writes)) {
		writes = append(writes, r.writes[name])
	}
	return r.held, r.ranges, writes, nil
}

// redo turns a change into what a commit needs.
type redo struct {
	tree   *Tree
	change *volume.Change

	was     map[string]node // by guarded path
	removed map[string]struct{}
	listed  map[string]struct{}
	timed   map[string]time.Time // what times steps say
	held    []store.Guard
	ranges  []store.RangeGuard
	writes  map[string]store.Write // by the name of the key; nil: there are no steps
}

func newRedo(t *Tree, c *volume.Change) *redo {
	r := &redo{tree: t, change: c, was: make(map[string]node, len(c.Guards)), listed: map[string]struct{}{}}
	if len(c.Steps) == 0 {
		return r
	}
	r.removed, r.timed, r.writes = map[string]struct{}{}, map[string]time.Time{}, map[string]store.Write{}
	for _, s := range c.Steps {
		switch s.Action {
		case volume.ActRemove:
			r.removed[s.Path] = struct{}{}
		case volume.ActTimes:
			r.timed[s.Path] = s.ModTime
		case volume.ActMkdir, volume.ActPut, volume.ActLink:
		}
	}
	return r
}

func (r *redo) do(ctx context.Context) error {
	if err := r.guards(ctx); err != nil {
		return err
	}
	if err := r.listings(ctx); err != nil || len(r.change.Steps) == 0 {
		return err
	}
	// Valid has seen to the order: what is removed, then what takes its place.
	blobs := newPutter(ctx, r.tree.options.Blobs)
	for _, s := range r.change.Steps {
		if err := r.step(ctx, blobs, s); err != nil {
			if lost := blobs.wait(); lost != nil {
				return failed(lost) // it may be why the step has ended
			}
			return fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return failed(blobs.wait())
}

func (r *redo) step(ctx context.Context, blobs *putter, s volume.Step) error {
	switch s.Action {
	case volume.ActRemove:
		return r.remove(ctx, s.Path)
	case volume.ActMkdir:
		return r.mkdir(s)
	case volume.ActPut:
		return r.put(ctx, blobs, s)
	case volume.ActTimes:
		return r.times(s)
	case volume.ActLink:
	}
	return capabilities.EINVAL
}

// remove ends the keys of a path. A directory goes with all that is in it: what
// the change does not remove is somebody else's.
func (r *redo) remove(ctx context.Context, path string) error {
	r.write(store.Write{Key: r.tree.key(entryName(path)), Delete: true})
	if r.was[path].kind != volume.Dir {
		r.write(store.Write{Key: r.tree.key(contentName(path)), Delete: true})
		return nil
	}
	r.write(store.Write{Key: r.tree.key(timeName(path)), Delete: true})
	list, err := r.listing(ctx, path)
	if err != nil {
		return err
	}
	for _, e := range list {
		if _, gone := r.removed[join(path, e.Name)]; !gone {
			return volume.ErrConflict
		}
	}
	return nil
}

func (r *redo) mkdir(s volume.Step) error {
	at, ok := r.timed[s.Path]
	if !ok {
		at = r.tree.now()
	}
	r.writeEntry(s.Path, entry{kind: volume.Dir, mode: s.Mode})
	return r.writeTime(s.Path, at)
}

// put writes a file. What it takes from the base is a file of the snapshot.
func (r *redo) put(ctx context.Context, blobs *putter, s volume.Step) error {
	e := entry{kind: volume.File, mode: s.Mode, time: s.ModTime, size: s.Size}
	if e.time.IsZero() {
		e.time = r.tree.now()
	}
	switch from := r.was[s.Base]; {
	case !keepable(e.time):
		return capabilities.EINVAL
	case s.Size > maxSize:
		return capabilities.EFBIG
	case s.Base != "" && (from.kind != volume.File || s.Keep > from.size):
		return capabilities.EINVAL
	}
	c, err := r.assemble(ctx, blobs, s)
	if err != nil {
		return err
	}
	r.writeEntry(s.Path, e)
	// The pieces are on their way: their digests are known once all are there.
	blobs.then(func() { r.writeContent(s.Path, *c) })
	return nil
}

// times writes the times of what is otherwise in place: a file, or a directory
// that is there or was made.
func (r *redo) times(s volume.Step) error {
	n := r.was[s.Path]
	if w, changed := r.writes[entryName(s.Path)]; changed {
		n = node{exists: w.Class == classOf(volume.Dir), entry: entry{kind: volume.Dir}}
	}
	switch {
	case !n.exists, !keepable(s.ModTime):
		return capabilities.EINVAL
	case n.kind == volume.Dir:
		return r.writeTime(s.Path, s.ModTime)
	}
	n.time = s.ModTime
	r.writeEntry(s.Path, n.entry)
	return nil
}

func (r *redo) writeEntry(path string, e entry) {
	r.write(store.Write{Key: r.tree.key(entryName(path)), Value: e.encode(), Class: classOf(e.kind)})
}

func (r *redo) writeContent(path string, c content) {
	r.write(store.Write{Key: r.tree.key(contentName(path)), Value: c.encode(), Blobs: c.blobs()})
}

func (r *redo) writeTime(dir string, at time.Time) error {
	if !keepable(at) {
		return capabilities.EINVAL
	}
	r.write(store.Write{Key: r.tree.key(timeName(dir)), Value: encodeTime(at)})
	return nil
}

// write writes a key. What takes the place of what was removed comes later.
func (r *redo) write(w store.Write) { r.writes[w.Name] = w }
