package volume

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Mem returns a base that is an empty directory: what lies over it is in
// memory only, and goes with its call.
func Mem() Base { return mem{} }

type mem struct{}

func (mem) Lstat(name string) (Info, Stamp, error) {
	if name != "." {
		return Info{}, Stamp{}, capabilities.ENOENT
	}
	epoch := time.Unix(0, 0).UTC()
	return Info{Kind: Dir, Mode: newDirMode, ModTime: epoch, Inode: inodeOf(".")},
		Stamp{Exists: true, Kind: Dir, Mode: newDirMode}, nil
}

func (mem) ReadDir(name string) ([]Entry, error) {
	if name != "." {
		return nil, capabilities.ENOENT
	}
	return nil, nil
}

func (mem) Readlink(string) (string, error) { return "", capabilities.ENOENT }

func (mem) Open(string) (Content, error) { return nil, capabilities.ENOENT }
