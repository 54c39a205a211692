package volume

import (
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// delta is the difference between an overlay, at one version, and its base.
type delta struct {
	version int
	steps   []Step
	lefts   []left
	err     error
	times   map[string]time.Time // by path that the steps make or change; zero: the time moves along
}

// left is an effect that the call would leave.
type left struct {
	verb   capabilities.Verb
	path   string
	bytes  int64
	detail string
	from   string // path in the base that was renamed
}

// unchanged is the difference of every overlay in which nothing was changed.
var unchanged = &delta{times: map[string]time.Time{}}

// delta returns the difference as it is now.
func (o *Overlay) delta() *delta {
	if o.version == 0 && !o.deep {
		return unchanged
	}
	if c := o.cached; c != nil && c.err == nil && c.version == o.version {
		return c
	}
	o.cached = nil
	o.budget.give(o.told)
	o.told = cost{}
	d := differ{o: o, names: map[string]struct{}{}}
	err := d.pair(".", &o.root, Stamp{Exists: true, Kind: Dir})
	o.cached = &delta{version: o.version, steps: d.ordered(), lefts: d.lefts, err: err}
	return o.cached
}

// time returns the time that a path has when the steps are done, and whether
// they make or change it.
func (d *delta) time(path string) (time.Time, bool) {
	if d.times == nil {
		d.times = map[string]time.Time{}
		for _, s := range d.steps {
			if s.Action != ActRemove {
				d.times[s.Path] = s.ModTime
			}
		}
	}
	t, ok := d.times[path]
	return t, ok
}

// changed returns how many paths the difference changes. What is moved counts
// once: where it arrives, and not where it no longer is.
func (d *delta) changed() int64 {
	if len(d.steps) == 0 {
		return 0
	}
	arrived, moved := map[string]struct{}{}, map[string]struct{}{}
	for _, l := range d.lefts {
		if l.from != "" {
			moved[l.from] = struct{}{}
		}
	}
	for _, s := range d.steps {
		if s.Action != ActRemove && s.Was.IsZero() {
			arrived[s.Path] = struct{}{}
		}
	}
	n := int64(len(arrived))
	for _, s := range d.steps {
		_, again := arrived[s.Path]
		_, elsewhere := moved[s.Path]
		if s.Action == ActRemove && !again && !elsewhere {
			n++
		}
	}
	return n
}

// differ compares the final tree with the base, path by path.
type differ struct {
	o     *Overlay
	lefts []left
	names map[string]struct{} // directories in which the steps make, replace or remove names

	removes, dirs, files, times []Step
}

// ordered returns the steps in the order in which they can be done.
func (d *differ) ordered() []Step {
	up := func(a, b Step) int { return strings.Compare(a.Path, b.Path) }
	down := func(a, b Step) int { return strings.Compare(b.Path, a.Path) }
	slices.SortFunc(d.removes, down)
	slices.SortFunc(d.dirs, up)
	slices.SortFunc(d.files, up)
	slices.SortFunc(d.times, down)
	slices.SortStableFunc(d.lefts, func(a, b left) int { return strings.Compare(a.path, b.path) })
	return slices.Concat(d.removes, d.dirs, d.files, d.times)
}

// pair compares what the overlay (nil: nothing) and the base have at a path.
func (d *differ) pair(path string, n *Node, old Stamp) error {
	if len(path) > maxPath {
		return capabilities.ENAMETOOLONG
	}
	if n != nil && n.base == path {
		return d.stayed(path, n)
	}
	if old.Exists && (n == nil || n.kind != old.Kind) {
		if err := d.gone(path, old); err != nil {
			return err
		}
		old = Stamp{}
	}
	if n == nil {
		return nil
	}
	return d.arrived(path, n, old)
}

// gone records that the base's path, and what is below it, is no longer there.
func (d *differ) gone(path string, old Stamp) error {
	l := left{verb: capabilities.Delete, path: path, bytes: old.Size}
	if old.Kind == Dir {
		l.detail = detailDir
		list, err := d.o.notes.list(path)
		if err != nil {
			return err
		}
		for _, e := range list {
			child := join(path, e.Name)
			st, err := d.o.notes.stamp(child)
			if err != nil {
				return err
			}
			if st.Exists {
				if err := d.gone(child, st); err != nil {
					return err
				}
			}
		}
	}
	return d.record(&d.removes, Step{Action: ActRemove, Path: path}, l)
}

// record notes a step and what is told of it. Both hold paths, which may be
// long: few bytes in a deep directory have long ones.
func (d *differ) record(list *[]Step, s Step, l left) error {
	c := cost{seen: int64(toldCost + 2*len(s.Path) + 2*len(l.from))}
	if err := d.o.budget.take(c); err != nil {
		return err
	}
	d.o.told = d.o.told.plus(c)
	*list = append(*list, s)
	if s.Action != ActTimes {
		dir, _ := split(s.Path)
		d.names[dir] = struct{}{}
	}
	if l.path != "" {
		d.lefts = append(d.lefts, l)
	}
	return nil
}

// stayed compares a node that is where the base has it.
func (d *differ) stayed(path string, n *Node) error {
	switch {
	case n.kind == Dir:
		if err := d.timed(path, n); err != nil {
			return err
		}
		for name, child := range n.children {
			below := join(path, name)
			var old Stamp
			if child == nil || child.base != below {
				var err error
				if old, err = d.o.notes.stamp(below); err != nil {
					return err
				}
			}
			if err := d.pair(below, child, old); err != nil {
				return err
			}
		}
		return d.follows(path, n)
	case n.kind == File && n.dirty:
		return d.rewritten(path, n, Stamp{Exists: true, Kind: File, Size: n.baseSize, Mode: n.mode})
	default:
		return d.timed(path, n)
	}
}

// timed records that the guest set the times of a path that is otherwise as
// it was.
func (d *differ) timed(path string, n *Node) error {
	if !n.timed {
		return nil
	}
	return d.record(&d.times, Step{Action: ActTimes, Path: path, ModTime: n.mtime},
		left{verb: capabilities.Overwrite, path: path, detail: DetailTimes})
}

// follows records the time of a directory whose names change, unless the guest
// set it. It is no effect, but it can be seen.
func (d *differ) follows(path string, n *Node) error {
	if _, changed := d.names[path]; !changed || !n.renamed || n.timed {
		return nil
	}
	if err := d.o.loadRoot(n); err != nil {
		return err
	}
	was := d.o.notes.time(path)
	if n.mtime.Equal(was) {
		return nil
	}
	return d.record(&d.times, Step{Action: ActTimes, Path: path, ModTime: n.mtime, Was: was}, left{})
}

// arrived compares a node that was made or moved with what the base has at its
// path: nothing, or something of the same kind.
func (d *differ) arrived(path string, n *Node, old Stamp) error {
	switch n.kind {
	case Dir:
		return d.directory(path, n, old)
	case File:
		if old.Exists {
			return d.rewritten(path, n, old)
		}
		return d.put(path, n, n.body.size, old, capabilities.Create)
	case Symlink:
		return d.link(path, n, old)
	case Special:
		return d.record(&d.files, Step{Action: ActPut, Path: path, Base: n.base, Mode: n.mode},
			leave(createdOr(old), path, n, 0))
	}
	return nil
}

func createdOr(old Stamp) capabilities.Verb {
	if old.Exists {
		return capabilities.Overwrite
	}
	return capabilities.Create
}

func leave(verb capabilities.Verb, path string, n *Node, bytes int64) left {
	l := left{verb: verb, path: path, bytes: bytes}
	if n.base != path {
		l.from = n.base
	}
	if n.kind == Dir {
		l.detail = detailDir
	}
	return l
}

// directory records a directory that was made or moved, and compares what is
// in it.
func (d *differ) directory(path string, n *Node, old Stamp) error {
	if err := d.arrivedDir(path, n, old); err != nil {
		return err
	}
	names, err := d.both(path, n, old)
	if err != nil {
		return err
	}
	for _, name := range names {
		child, err := d.o.child(n, name)
		if err != nil {
			return err
		}
		var was Stamp
		if old.Exists {
			if was, err = d.o.notes.stamp(join(path, name)); err != nil {
				return err
			}
		}
		if err := d.pair(join(path, name), child, was); err != nil {
			return err
		}
	}
	if old.Exists {
		return d.follows(path, n)
	}
	return nil
}

// arrivedDir records the directory itself. That it was made tells of its times
// too.
func (d *differ) arrivedDir(path string, n *Node, old Stamp) error {
	if old.Exists {
		return d.timed(path, n)
	}
	s := Step{Action: ActMkdir, Path: path, Mode: n.mode, Base: n.base}
	if err := d.record(&d.dirs, s, leave(capabilities.Create, path, n, 0)); err != nil {
		return err
	}
	return d.record(&d.times, Step{Action: ActTimes, Path: path, ModTime: n.mtime}, left{})
}

// both returns the names that a directory has, or that the base's directory
// at the same path has.
func (d *differ) both(path string, n *Node, old Stamp) ([]string, error) {
	list, err := d.o.entries(n)
	if err != nil {
		return nil, err
	}
	if old.Exists {
		was, err := d.o.notes.list(path)
		if err != nil {
			return nil, err
		}
		list = slices.Concat(list, was)
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// link records a link that was moved, unless the base has the same there.
func (d *differ) link(path string, n *Node, old Stamp) error {
	target, err := d.o.Readlink(n)
	if err != nil {
		return err
	}
	if old.Exists {
		if was, err := d.o.base.Readlink(path); err == nil && was == target {
			return nil
		}
	}
	return d.record(&d.files, Step{Action: ActLink, Path: path, Base: n.base, Target: target, putBack: n.base == ""},
		leave(createdOr(old), path, n, int64(len(target))))
}

// rewritten compares a file's content with the one that the base has at its
// path.
func (d *differ) rewritten(path string, n *Node, old Stamp) error {
	switch rel, err := d.o.compare(n, path, old.Size); {
	case err != nil:
		return err
	case rel == same:
		return d.timed(path, n)
	case rel == longer:
		return d.put(path, n, n.body.size-old.Size, old, capabilities.Append)
	default:
		return d.put(path, n, n.body.size, old, capabilities.Overwrite)
	}
}

// put records a file.
func (d *differ) put(path string, n *Node, bytes int64, old Stamp, verb capabilities.Verb) error {
	s := Step{Action: ActPut, Path: path, Mode: n.mode, ModTime: n.mtime, Size: n.body.size}
	if old.Exists {
		s.Mode = old.Mode
	}
	if n.base != "" && (n.body.keep > 0 || !n.dirty) {
		s.Base, s.Keep = n.base, n.body.keep
	}
	var err error
	if s.Extents, err = d.o.extents(n); err != nil {
		return err
	}
	return d.record(&d.files, s, leave(verb, path, n, bytes))
}
