package volume

import (
	"slices"
	"strings"
	"time"
)

// plan turns what was prepared into operations, which are data: one process can
// begin with them and another one end. found are the stamps that guarded paths
// had when the guards held. The folder is locked.
func (a *application) plan(found map[string]Stamp, forward bool) *publication {
	b := planner{
		application: a, found: found, out: newPublication(a.host, a.stage),
		parts: map[string]int{}, gone: map[string]bool{}, names: map[string]bool{}, made: map[string]bool{},
	}
	b.out.forward = forward
	b.removals()
	b.directories()
	b.places()
	b.fileTimes()
	b.dirTimes()
	return b.out
}

type planner struct {
	*application
	found map[string]Stamp
	out   *publication

	parts map[string]int  // by path that is taken
	gone  map[string]bool // directories that are removed
	names map[string]bool // directories whose names change
	made  map[string]bool // new directories
}

func (b *planner) add(o operation) {
	if o.Do != deedTimes {
		dir, _ := split(o.Path)
		b.names[dir] = true
	}
	b.out.ops = append(b.out.ops, o)
}

// old returns what is at a path that an operation changes.
func (b *planner) old(path string) Stamp {
	if st, ok := b.found[path]; ok {
		return st
	}
	return b.guards[path]
}

// removals take what goes away, and what has to make room for something else
// before it is moved itself.
func (b *planner) removals() {
	for _, s := range b.change.Steps {
		if s.Action == ActRemove {
			b.take(s.Path)
			b.gone[s.Path] = b.guards[s.Path].Kind == Dir
		}
	}
	for _, s := range b.change.Steps {
		if (s.Action == ActPut || s.Action == ActLink) && b.sources[s.Path] && b.parts[s.Path] == 0 {
			b.take(s.Path)
		}
	}
}

func (b *planner) take(path string) {
	b.parts[path] = b.next()
	old := b.old(path)
	b.add(operation{Do: deedTake, Path: path, Part: b.parts[path], Moved: b.sources[path], Kind: old.Kind, Old: old})
}

func (b *planner) directories() {
	for i, s := range b.change.Steps {
		if s.Action != ActMkdir {
			continue
		}
		b.made[s.Path], b.gone[s.Path] = true, false
		if part, ok := b.staged[i]; ok {
			b.add(operation{Do: deedPlace, Path: s.Path, Part: part, Kind: Dir})
			continue
		}
		b.add(operation{Do: deedMkdir, Path: s.Path, Mode: s.Mode})
	}
}

// places put files and links where they belong.
func (b *planner) places() {
	for i, s := range b.change.Steps {
		part, ok := b.staged[i]
		if !ok || s.Action == ActMkdir {
			continue
		}
		o := operation{Do: deedPlace, Path: s.Path, Part: part, Kind: File, Mode: s.Mode, ModTime: s.ModTime}
		if s.Action == ActLink {
			o.Kind = Symlink
		}
		if part == 0 {
			o.Part, o.Moved, o.Kind = b.parts[s.Base], true, b.guards[s.Base].Kind
		}
		if b.parts[s.Path] == 0 {
			o.Old = b.old(s.Path)
		}
		b.add(o)
	}
}

// fileTimes set the times of files that stay where they are.
func (b *planner) fileTimes() {
	for i, s := range b.change.Steps {
		if _, copied := b.staged[i]; s.Action == ActTimes && !copied && b.stays(s.Path) {
			b.add(operation{Do: deedTimes, Path: s.Path, Kind: File, Old: b.old(s.Path), ModTime: s.ModTime})
		}
	}
}

// dirTimes set the times of directories, deepest first. One whose names change
// gets the time that the call has shown, or keeps its own where the call has shown
// none: to write a file changes no directory. Where somebody else has changed it
// meanwhile the later time stays.
func (b *planner) dirTimes() {
	times := map[string]operation{}
	for dir := range b.names {
		if fi, err := b.disk.lstat(dir); !b.made[dir] && !b.gone[dir] && err == nil && fi.IsDir() {
			at := plainTime(fi.ModTime())
			b.out.before[dir] = at
			times[dir] = operation{ModTime: at, Follows: true}
		}
	}
	for _, s := range b.change.Steps {
		if s.Action != ActTimes || b.stays(s.Path) {
			continue
		}
		o := operation{ModTime: s.ModTime, Follows: !s.Was.IsZero()}
		if at, ok := b.out.before[s.Path]; ok && o.Follows && !at.Equal(s.Was) {
			o.ModTime = later(at, s.ModTime)
		}
		times[s.Path] = o
	}
	for path, o := range times {
		o.Do, o.Path, o.Kind = deedTimes, path, Dir
		b.out.ops = append(b.out.ops, o)
	}
	slices.SortStableFunc(b.out.ops[len(b.out.ops)-len(times):], func(x, y operation) int {
		switch { // the root, which all others are in, comes last
		case x.Path == ".":
			return 1
		case y.Path == ".":
			return -1
		}
		return strings.Compare(y.Path, x.Path)
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stays reports whether a path is that of a file which the call saw and leaves
// there.
func (b *planner) stays(path string) bool { return b.known(path) && !b.made[path] }
