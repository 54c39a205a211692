package volume

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Folder is where a store is. The zero value is nowhere.
type Folder struct {
	path  string        // absolute, without links
	key   string        // by which folders are sorted
	above []fs.FileInfo // the folder itself, and those that hold it
}

// folderOf finds out where an open folder is.
func folderOf(dir string, root *os.Root) Folder {
	path, err := filepath.Abs(dir)
	if err != nil {
		return Folder{}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	self, err := root.Stat(".")
	if err != nil {
		return Folder{path: path}
	}
	f := Folder{path: path, key: folderKey(self), above: []fs.FileInfo{self}}
	for at := path; at != filepath.Dir(at); {
		at = filepath.Dir(at)
		if fi, err := os.Stat(at); err == nil {
			f.above = append(f.above, fi)
		}
	}
	return f
}

// Compare orders folders: always in the same way, in all processes.
func (f Folder) Compare(g Folder) int {
	return cmp.Or(cmp.Compare(f.key, g.key), cmp.Compare(f.path, g.path))
}

// Overlaps reports whether both are the same folder, or one holds the other,
// as far as that can be told.
func (f Folder) Overlaps(g Folder) bool { return f.holds(g) || g.holds(f) }

func (f Folder) holds(g Folder) bool {
	return len(f.above) > 0 && slices.ContainsFunc(g.above, func(fi fs.FileInfo) bool {
		return os.SameFile(f.above[0], fi)
	})
}

// Path returns where the folder is on the host: absolute, without links. It is
// the same in all processes, and empty for the zero value.
func (f Folder) Path() string { return f.path }
