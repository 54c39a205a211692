package volume

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Fixed returns a base that has these files, by path, and the folders that they
// are in. Their times are the start of 1970. The contents are not copied and not
// to be changed. It is safe for concurrent use.
func Fixed(files map[string][]byte) Base {
	f := &fixed{files: files, dirs: map[string][]Entry{".": nil}}
	for name := range files {
		f.add(name, File)
	}
	for _, list := range f.dirs {
		slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return f
}

type fixed struct {
	files map[string][]byte
	dirs  map[string][]Entry // by path
}

// add lists a name in its folder, and that in the one above where it is new.
func (f *fixed) add(name string, k Kind) {
	dir := path.Dir(name)
	if _, known := f.dirs[dir]; !known {
		f.dirs[dir] = nil
		f.add(dir, Dir)
	}
	f.dirs[dir] = append(f.dirs[dir], Entry{Name: path.Base(name), Kind: k, Inode: inodeOf(name)})
}

func (f *fixed) Lstat(name string) (Info, Stamp, error) {
	i := Info{Mode: newFileMode, ModTime: time.Unix(0, 0).UTC(), Inode: inodeOf(name)}
	if content, ok := f.files[name]; ok {
		i.Size = int64(len(content))
	} else if _, ok := f.dirs[name]; ok {
		i.Kind, i.Mode = Dir, newDirMode
	} else {
		return Info{}, Stamp{}, capabilities.ENOENT
	}
	return i, Stamp{Exists: true, Kind: i.Kind, Mode: i.Mode, Size: i.Size, ModTime: i.ModTime, Inode: i.Inode}, nil
}

func (f *fixed) ReadDir(name string) ([]Entry, error) {
	list, ok := f.dirs[name]
	switch {
	case ok:
		return slices.Clone(list), nil
	default:
		if _, file := f.files[name]; file {
			return nil, capabilities.ENOTDIR
		}
		return nil, capabilities.ENOENT
	}
}

func (f *fixed) Readlink(name string) (string, error) {
	if _, _, err := f.Lstat(name); err != nil {
		return "", err
	}
	return "", capabilities.EINVAL
}

func (f *fixed) Open(name string) (Content, error) {
	content, ok := f.files[name]
	if !ok {
		return nil, capabilities.ENOENT
	}
	return inMemory{bytes.NewReader(content)}, nil
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }
