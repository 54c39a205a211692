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
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	// tick is longer than the steps in which most systems count the times of
	// files: a file changed less than a tick ago can change again without showing
	// it.
	tick = 20 * time.Millisecond

	// coarseTick is the same for file systems that count in seconds, at most two.
	// They are known by times that are whole seconds.
	coarseTick = 2*time.Second + tick

	// waitSize is the size in bytes from which waiting for the tick to pass is
	// cheaper than reading the file.
	waitSize = 1 << 20

	// maxWaits bounds, in ticks, how long a file that goes on changing is waited
	// for. It is read then, whatever its size.
	maxWaits = 3
)

// HostDir is a folder of the host as a volume. Everything is reached through
// an [os.Root]: no link leads out of it. It is safe for concurrent use.
//
// No single reading method sees a change half applied. A call reads many times,
// before and after somebody's change perhaps: its guards then conflict. That is
// found when it commits, so what such a call says when it ends in another way
// may rest on two states. Readers that do not come through the same HostDir can
// see a change half applied.
type HostDir struct {
	root   *os.Root
	disk   disk
	folder Folder
	times  time.Duration // the step in which the file system counts them
	turn   chan struct{} // held by who is next to lock the folder, and by who has it alone
	inside sync.RWMutex  // held by who has locked the folder, before its own lock
	swept  bool          // by who has the folder alone: stages of others were looked for

	intents Intents // nil: changes are committed here
	owner   string  // of the intents

	publishing sync.RWMutex // held while a change is put in place or taken back

	mu        sync.Mutex
	stale     []string // stage folders that could not be deleted
	left      []string // stage folders of which it is not known whether they were committed
	undone    undone   // files that were brought back
	abandoned []string
}

var (
	_ Locker  = (*HostDir)(nil)
	_ Lister  = (*HostDir)(nil)
	_ Stepper = (*HostDir)(nil)
)

// OpenDir returns the host's folder as a volume. Links in it are never
// followed out of it; the path itself may be one.
func OpenDir(dir string) (*HostDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("volume: %w", named(err))
	}
	step, err := timeStep(root)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume: %w", named(err)), root.Close())
	}
	return &HostDir{
		root: root, disk: disk{root: root}, folder: folderOf(dir, root), times: step, turn: make(chan struct{}, 1),
	}, nil
}

// Watch has step told of each operation on the host's file system before it is
// done; one that it returns an error for fails. nil: nobody is told. It is to be
// called before anything else is done with the folder.
func (h *HostDir) Watch(step func(op, name string) error) { h.disk.fault = step }

// Close releases the folder.
func (h *HostDir) Close() error { return h.root.Close() }

// TimeStep returns the step in which the folder's file system counts times, or a
// multiple of it.
func (h *HostDir) TimeStep() time.Duration { return h.times }

// timeStep finds out in which steps a file system counts times. The system does
// not say: some are known to count nanoseconds, and of others the root's own times
// tell.
func timeStep(root *os.Root) (time.Duration, error) {
	dir, err := root.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	fi, err := dir.Stat()
	if err != nil {
		return 0, err
	}
	return stepFrom(changeTime(fi), fineTimes(dir)), nil
}

// stepFrom judges by one time that a file system has counted. Too long a step does
// no harm: times are set to its multiples.
func stepFrom(t time.Time, fine bool) time.Duration {
	switch ns := t.Nanosecond(); {
	case ns == 0:
		return 2 * time.Second // FAT
	case ns%int(10*time.Millisecond) == 0:
		return 10 * time.Millisecond // exFAT
	case fine:
		return 1
	case ns%int(time.Microsecond) == 0:
		return time.Microsecond
	}
	return 100 // NTFS, SMB
}

// Folder says where the folder was when it was opened.
func (h *HostDir) Folder() Folder { return h.folder }

// Abandoned returns the stages in the root with files of the volume in them: what
// killed processes left of a change that was not committed, and what somebody else
// had written where a committed change belongs. Each is returned once.
func (h *HostDir) Abandoned() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := h.abandoned
	h.abandoned = nil
	slices.Sort(names)
	return names
}

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
	fi, err := h.lstat(path)
	for range maxWaits {
		if err != nil || !early(fi) || coarse(fi) || fi.Size() < waitSize {
			break
		}
		time.Sleep(tick)
		fi, err = h.lstat(path)
	}
	if err != nil {
		err = errnoOf(err)
		if !isAbsent(err) && h.throughLink(name) {
			err = capabilities.ENOTDIR
		}
		return Info{}, Stamp{}, err
	}
	st := stampOf(fi)
	if early(fi) {
		if st.Digest, err = h.digest(name); err != nil && !unreadable(err) {
			return Info{}, Stamp{}, err
		}
	}
	return infoOf(name, fi), st, nil
}

func (h *HostDir) lstat(path string) (fs.FileInfo, error) {
	h.publishing.RLock()
	defer h.publishing.RUnlock()
	return h.disk.look(path)
}

// early reports whether a file was changed so recently that its times cannot
// yet tell a further change.
func early(fi fs.FileInfo) bool {
	if !fi.Mode().IsRegular() {
		return false
	}
	step := tick
	if coarse(fi) {
		step = coarseTick
	}
	return time.Since(changeTime(fi)) < step
}

// coarse reports whether a file's times may be counted in seconds.
func coarse(fi fs.FileInfo) bool { return changeTime(fi).Nanosecond() == 0 }

// digest returns the hex SHA-256 of a file's content.
func (h *HostDir) digest(name string) (string, error) {
	f, err := h.openShared(name)
	if err != nil {
		return "", err
	}
	return digestOf(f)
}

// digestAlone is digest for who keeps readers out.
func (h *HostDir) digestAlone(name string) (string, error) {
	f, err := h.open(name)
	if err != nil {
		return "", err
	}
	return digestOf(f)
}

// digestOf returns the digest of a file and closes it.
func digestOf(f *os.File) (string, error) {
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
	list, _, err := h.List(name)
	return list, err
}

// List is ReadDir, and reports whether names were left out.
func (h *HostDir) List(name string) (list []Entry, hidden bool, err error) {
	path, err := local(name)
	if err != nil {
		return nil, false, err
	}
	found, err := h.names(path)
	if err != nil {
		return nil, false, errnoOf(err)
	}
	list = make([]Entry, 0, len(found))
	for _, e := range found {
		if _, err := local(e.Name()); err != nil {
			hidden = true
			continue
		}
		list = append(list, Entry{Name: e.Name(), Kind: kindOf(e.Type()), Inode: inodeOf(join(name, e.Name()))})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, hidden, nil
}

func (h *HostDir) names(path string) ([]fs.DirEntry, error) {
	h.publishing.RLock()
	defer h.publishing.RUnlock()
	d, err := h.root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// Readlink returns the target of a link, EINVAL for anything else.
func (h *HostDir) Readlink(name string) (string, error) {
	path, err := local(name)
	if err != nil {
		return "", err
	}
	h.publishing.RLock()
	defer h.publishing.RUnlock()
	target, err := h.root.Readlink(path)
	return filepath.ToSlash(target), errnoOf(err)
}

// Open opens a regular file for reading. EISDIR for a directory, EACCES for
// special files, which it does not wait for.
func (h *HostDir) Open(name string) (Content, error) {
	f, err := h.openShared(name)
	if err != nil {
		return nil, err
	}
	return content{f}, nil
}

func (h *HostDir) openShared(name string) (*os.File, error) {
	h.publishing.RLock()
	defer h.publishing.RUnlock()
	return h.open(name)
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
