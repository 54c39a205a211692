package volume

// What volumes that live elsewhere than in a folder need to be like one.

// RootMode is the mode of the root of a volume that is no folder.
const RootMode = newDirMode

// InodeOf returns the inode number of a path below a volume's root, which every
// volume shows for it. It is never 0.
func InodeOf(path string) uint64 { return inodeOf(path) }

// Valid returns EINVAL for a change that no overlay makes: it may come from a
// decoder. What passes changes nothing that it has no guard for, passes through
// directories only, and makes no link.
func (c *Change) Valid() error { return c.valid() }

// ValidPath reports whether a path is one that a guest can see in a volume: clean,
// relative, and not the host's own.
func ValidPath(path string) bool { return plain(path) && wellNamed(path) }

// wellNamed reports whether a guest could have made each name of a path.
func wellNamed(path string) bool {
	if path == "." {
		return true
	}
	for path != "." {
		dir, name := split(path)
		if checkName(dir, name) != nil {
			return false
		}
		path = dir
	}
	return true
}
