package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	// tick is longer than the steps in which file systems count time: a file
	// changed less than a tick ago can change again without showing it.
	tick = 20 * time.Millisecond

	// waitSize is the size in bytes from which waiting for the tick to pass is
	// cheaper than reading the file.
	waitSize = 1 << 20
)

// HostDir is a folder of the host as a volume. Everything is reached through
// an [os.Root]: no link leads out of it. It is safe for concurrent use.
//
// A reader that does not come through the same HostDir, or another one on the
// same folder, can see a change half applied.
type HostDir struct {
	root *os.Root
	disk disk
	busy chan struct{} // held by Check and Apply, before the folder's own lock

	stale []string // stage folders that could not be deleted; by busy
}

var (
	_ Store   = (*HostDir)(nil)
	_ Checker = (*HostDir)(nil)
)

// OpenDir returns the host's folder as a volume. Links in it are never
// followed out of it; the path itself may be one.
func OpenDir(dir string) (*HostDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("volume: %w", named(err))
	}
	return &HostDir{root: root, disk: disk{root: root}, busy: make(chan struct{}, 1)}, nil
}

// Managed returns the host's folder as a volume, and makes it, for the daemon's
// user alone, when it is missing.
func Managed(dir string) (*HostDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("volume: %w", named(err))
	}
	return OpenDir(dir)
}

// Close releases the folder.
func (h *HostDir) Close() error { return h.root.Close() }

// local returns the host's spelling of a path, ENOENT if it has none.
func local(name string) (string, error) {
	s, err := filepath.Localize(name)
	if err != nil {
		return "", capabilities.ENOENT
	}
	return s, nil
}

// Lstat returns what is at a path, a link itself and not its target.
func (h *HostDir) Lstat(name string) (Info, Stamp, error) {
	path, err := local(name)
	if err != nil {
		return Info{}, Stamp{}, err
	}
	fi, err := h.root.Lstat(path)
	if err != nil {
		return Info{}, Stamp{}, errnoOf(err)
	}
	if early(fi) && fi.Size() >= waitSize {
		time.Sleep(tick)
		if fi, err = h.root.Lstat(path); err != nil {
			return Info{}, Stamp{}, errnoOf(err)
		}
	}
	st := stampOf(fi)
	if early(fi) && fi.Size() < waitSize {
		if st.Digest, err = h.digest(name); err != nil && !unreadable(err) {
			return Info{}, Stamp{}, err
		}
	}
	return infoOf(name, fi), st, nil
}

// early reports whether a file was changed so recently that its times cannot
// yet tell a further change.
func early(fi fs.FileInfo) bool {
	return fi.Mode().IsRegular() && time.Since(changeTime(fi)) < tick
}

// digest returns the hex SHA-256 of a file's content.
func (h *HostDir) digest(name string) (string, error) {
	f, err := h.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", errnoOf(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func kindOf(m fs.FileMode) Kind {
	switch m.Type() {
	case 0:
		return File
	case fs.ModeDir:
		return Dir
	case fs.ModeSymlink:
		return Symlink
	}
	return Special
}

func infoOf(name string, fi fs.FileInfo) Info {
	info := Info{
		Kind: kindOf(fi.Mode()), Mode: fi.Mode().Perm(), ModTime: plainTime(fi.ModTime()), Inode: inodeOf(name),
	}
	if info.Kind == File || info.Kind == Symlink {
		info.Size = fi.Size()
	}
	return info
}

// stampOf returns the stamp of a file, without a digest.
func stampOf(fi fs.FileInfo) Stamp {
	st := Stamp{Exists: true, Kind: kindOf(fi.Mode()), Mode: fi.Mode().Perm()}
	if st.Kind == Dir {
		return st
	}
	if st.Kind != Special {
		st.Size = fi.Size()
	}
	st.ModTime = plainTime(fi.ModTime())
	st.Changed, st.Inode = plainTime(statusTime(fi)), inodeNumber(fi)
	if statusTime(fi).IsZero() {
		st.Changed = time.Time{}
	}
	return st
}

// changeTime returns the time of the last change of a file's content or, where
// the system keeps it, of anything about the file.
func changeTime(fi fs.FileInfo) time.Time {
	if t := statusTime(fi); !t.IsZero() {
		return t
	}
	return fi.ModTime()
}

// ReadDir returns the entries of a directory, sorted by name. Names that are
// no UTF-8, or that the host could not be asked for, are left out.
func (h *HostDir) ReadDir(name string) ([]Entry, error) {
	path, err := local(name)
	if err != nil {
		return nil, err
	}
	d, err := h.root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	defer d.Close()
	found, err := d.ReadDir(-1)
	if err != nil {
		return nil, errnoOf(err)
	}
	list := make([]Entry, 0, len(found))
	for _, e := range found {
		if _, err := local(e.Name()); err != nil {
			continue
		}
		list = append(list, Entry{Name: e.Name(), Kind: kindOf(e.Type()), Inode: inodeOf(join(name, e.Name()))})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Readlink returns the target of a link, EINVAL for anything else.
func (h *HostDir) Readlink(name string) (string, error) {
	path, err := local(name)
	if err != nil {
		return "", err
	}
	target, err := h.root.Readlink(path)
	return filepath.ToSlash(target), errnoOf(err)
}

// Open opens a regular file for reading. EISDIR for a directory, EACCES for
// special files, which it does not wait for.
func (h *HostDir) Open(name string) (Content, error) {
	f, err := h.open(name)
	if err != nil {
		return nil, err
	}
	return content{f}, nil
}

func (h *HostDir) open(name string) (*os.File, error) {
	path, err := local(name)
	if err != nil {
		return nil, err
	}
	f, err := h.root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
		err = errnoOf(err)
	case fi.IsDir():
		err = capabilities.EISDIR
	case !fi.Mode().IsRegular():
		err = capabilities.EACCES
	default:
		return f, nil
	}
	_ = f.Close() // it was only read
	return nil, err
}

// content is a file of the host, with the errors of a base.
type content struct{ file *os.File }

func (c content) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.file.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errnoOf(err)
	}
	return n, err
}

func (c content) Close() error { return errnoOf(c.file.Close()) }
