package volume

import (
	"io/fs"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// valid refuses a change that no overlay would make, with EINVAL: it may come
// from a decoder. What passes changes nothing that it has no guard for, passes
// through directories only, and makes no link but for the host, see
// [Overlay.Symlink].
func (c *Change) valid() error {
	v := validator{guards: map[string]Stamp{}, removed: map[string]bool{}, made: map[string]Step{}, sources: map[string]bool{}}
	if v.guarded(c) && v.collect(c.Steps) && v.steps(c.Steps) {
		return nil
	}
	return capabilities.EINVAL
}

// validator is what the parts of a change say of each path.
type validator struct {
	guards  map[string]Stamp
	removed map[string]bool
	made    map[string]Step // what mkdir, put and link steps leave
	sources map[string]bool // bases of steps
}

func (v *validator) guarded(c *Change) bool {
	listed := map[string]bool{}
	for _, g := range c.Guards {
		if _, twice := v.guards[g.Path]; twice || !plain(g.Path) || g.Stamp.Kind > Special {
			return false
		}
		v.guards[g.Path] = g.Stamp
	}
	for _, l := range c.Listings {
		if listed[l.Path] || !plain(l.Path) {
			return false
		}
		listed[l.Path] = true
	}
	return true
}

// plain reports whether a path is one of the volume that guests can see.
func plain(path string) bool { return fs.ValidPath(path) && len(path) <= maxPath && !hidden(path) }

// collect reads the steps, which must be in their order: a path has at most one
// of each sort.
func (v *validator) collect(steps []Step) bool {
	var last Step
	for i, s := range steps {
		if i > 0 && !ordered(last, s) {
			return false
		}
		last = s
		switch s.Action {
		case ActRemove:
			v.removed[s.Path] = true
		case ActMkdir, ActPut, ActLink:
			if _, twice := v.made[s.Path]; twice || (s.Base != "" && v.sources[s.Base]) {
				return false
			}
			v.made[s.Path] = s
			v.sources[s.Base] = true
		case ActTimes:
		default:
			return false
		}
	}
	return true
}

// phases are the actions in the order in which they are done.
var phases = map[Action]int{ActRemove: 1, ActMkdir: 2, ActPut: 3, ActLink: 3, ActTimes: 4}

// ordered reports whether step b may come after step a.
func ordered(a, b Step) bool {
	switch p, q := phases[a.Action], phases[b.Action]; {
	case p != q:
		return p < q
	case a.Action == ActRemove, a.Action == ActTimes:
		return a.Path > b.Path
	default:
		return a.Path < b.Path
	}
}

func (v *validator) steps(steps []Step) bool {
	for _, s := range steps {
		root := s.Path == "." && s.Action != ActTimes
		if root || !plain(s.Path) || s.Mode&^fs.ModePerm != 0 || !v.reachable(s) || !v.step(s) {
			return false
		}
	}
	return true
}

// reachable reports whether a step's path is guarded, or in a directory that
// the change makes, and passes through directories only.
func (v *validator) reachable(s Step) bool {
	dir, _ := split(s.Path)
	_, guarded := v.guards[s.Path]
	if _, inside := v.made[dir]; !guarded && !inside {
		return false
	}
	for i := range len(s.Path) {
		if s.Path[i] == '/' && !v.directory(s.Path[:i], s.Action == ActRemove) {
			return false
		}
	}
	return true
}

// directory reports whether a path is a directory: in the base, or once the
// change has removed and made what it does.
func (v *validator) directory(path string, before bool) bool {
	st := v.guards[path]
	was := st.Exists && st.Kind == Dir
	if before {
		return was
	}
	if s, ok := v.made[path]; ok {
		return s.Action == ActMkdir
	}
	return was && !v.removed[path]
}

func (v *validator) step(s Step) bool {
	switch s.Action {
	case ActRemove:
		return v.guards[s.Path].Exists
	case ActMkdir:
		return v.free(s.Path) && (s.Base == "" || v.source(s.Base, Dir))
	case ActPut:
		return v.put(s)
	case ActLink:
		return v.link(s)
	case ActTimes:
		made, ok := v.made[s.Path]
		return !ok && !v.removed[s.Path] || made.Action == ActMkdir
	}
	return false
}

// free reports whether there is nothing at a path once the removals are done.
func (v *validator) free(path string) bool { return !v.guards[path].Exists || v.removed[path] }

// source reports whether what a step takes from the base is of one of two
// kinds, and reached through directories only.
func (v *validator) source(path string, kinds ...Kind) bool {
	st := v.guards[path]
	if path == "." || !plain(path) || !st.Exists || (st.Kind != kinds[0] && st.Kind != kinds[len(kinds)-1]) {
		return false
	}
	for i := range len(path) {
		if path[i] == '/' && !v.directory(path[:i], true) {
			return false
		}
	}
	return true
}

// put checks a file. It replaces nothing but a file.
func (v *validator) put(s Step) bool {
	old := v.guards[s.Path]
	if !v.free(s.Path) && old.Kind != File && old.Kind != Special {
		return false
	}
	if s.Base != "" && !v.source(s.Base, File, Special) {
		return false
	}
	if s.Target != "" || s.Keep < 0 || s.Keep > s.Size || (s.Keep > 0 && s.Base == "") {
		return false
	}
	for _, e := range s.Extents {
		if e.Offset < 0 || e.Offset > s.Size-int64(len(e.Data)) {
			return false
		}
	}
	return true
}

// link checks a link: it can only be moved from where it no longer is, or put back
// by the host.
func (v *validator) link(s Step) bool {
	if s.putBack {
		return s.Base == "" && plainTarget(s.Target) && (v.free(s.Path) || v.guards[s.Path].Kind == Symlink)
	}
	over, replaced := v.made[s.Base]
	replaced = replaced && over.Base != s.Base
	return (v.free(s.Path) || v.guards[s.Path].Kind == Symlink) &&
		s.Base != s.Path && s.Target != "" && !strings.ContainsRune(s.Target, 0) &&
		v.source(s.Base, Symlink) && (v.removed[s.Base] || replaced)
}
