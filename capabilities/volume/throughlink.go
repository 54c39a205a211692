package volume

import "io/fs"

// throughLink reports whether a name passes through a link. Judges ask for such names
// where a call has put a directory in the place of a link.
func (h *HostDir) throughLink(name string) bool {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		path, err := local(name[:i])
		if err != nil {
			return false
		}
		fi, err := h.lstat(path)
		switch {
		case err != nil:
			return false
		case fi.Mode()&fs.ModeSymlink != 0:
			return true
		}
	}
	return false
}
