package volume

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	maxName  = 255
	maxPath  = 4096
	maxLinks = 40

	// reservedPrefix begins the names in a volume's root that belong to the
	// host: no guest sees or makes one.
	reservedPrefix = ".sandboxd-"
)

// reserved reports whether a name in a volume's root belongs to the host. Case
// does not count, because on some hosts it does not tell files apart.
func reserved(name string) bool {
	n := 0
	for i := range name {
		if n == len(reservedPrefix) {
			return strings.EqualFold(name[:i], reservedPrefix)
		}
		n++
	}
	return n == len(reservedPrefix) && strings.EqualFold(name, reservedPrefix)
}

// hidden reports whether a path below the root belongs to the host.
func hidden(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return reserved(top)
}

// join returns the path of a name in a directory; both are clean.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// split returns the directory of a clean path and the name in it.
func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

// inodeOf returns the inode number of a path below the root. It is never 0,
// which some guests take for an unused entry.
func inodeOf(path string) uint64 {
	sum := sha256.Sum256([]byte(path))
	return max(1, binary.LittleEndian.Uint64(sum[:8]))
}

// checkPath refuses what is no path: EINVAL, EILSEQ or ENAMETOOLONG.
func checkPath(path string) error {
	switch {
	case path == "" || strings.IndexByte(path, 0) >= 0:
		return capabilities.EINVAL
	case !utf8.ValidString(path):
		return capabilities.EILSEQ
	case len(path) > maxPath:
		return capabilities.ENAMETOOLONG
	}
	return nil
}

// checkName refuses what cannot be the name of a new file in dir, whose path
// is given.
func checkName(dir, name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	switch {
	case name == "." || name == ".." || strings.IndexByte(name, '/') >= 0:
		return capabilities.EINVAL
	case len(name) > maxName || len(dir)+1+len(name) > maxPath:
		return capabilities.ENAMETOOLONG
	case dir == "." && reserved(name):
		return capabilities.EACCES
	}
	return nil
}
