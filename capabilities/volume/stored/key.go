package stored

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// The keys of a path. That of its entry is the directory, NUL and the name, so
// that a directory is the range of the keys with one prefix; the others have no
// NUL, and so are in no such range.
const (
	nul        = "\x00"
	contentKey = "\x01" // and the path: what a file holds
	timeKey    = "\x02" // and the path: when the names of a directory changed
)

// area begins the area of a volume's space.
const area = "volume/"

// SpaceOf returns the space of a package's volume.
func SpaceOf(principal, pkg, name string) store.Space {
	return store.Space{Principal: principal, Package: pkg, Area: area + name}
}

// VolumeOf returns the name of the volume that has a space, and whether there is
// one.
func VolumeOf(s store.Space) (name string, ok bool) {
	name, ok = strings.CutPrefix(s.Area, area)
	return name, ok && name != ""
}

// classOf returns the class of an entry's key, see [store.Write].
func classOf(k volume.Kind) uint8 { return uint8(k) + 1 }

// prefixOf begins the names of the keys of a directory's entries.
func prefixOf(dir string) string {
	if dir == "." {
		return nul
	}
	return dir + nul
}

// entryName returns the name of the key of a path's entry. The root has none.
func entryName(path string) string {
	dir, name := split(path)
	return prefixOf(dir) + name
}

func contentName(path string) string { return contentKey + path }

func timeName(dir string) string { return timeKey + dir }

func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
