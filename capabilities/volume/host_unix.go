//go:build unix

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nonblock keeps an open from waiting for the other end of a pipe.
const nonblock = syscall.O_NONBLOCK

// inodeNumber returns the host's number of a file.
func inodeNumber(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// linked reports whether a file is known to have other names.
func linked(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode().IsRegular() && st.Nlink > 1
}

// owner is who a file belongs to.
type owner struct{ user, group int }

// ownerOf returns who a file belongs to.
func ownerOf(fi fs.FileInfo) (owner, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{}, false
	}
	return owner{int(st.Uid), int(st.Gid)}, true
}

// give gives a new file to an owner, as far as the host allows: only root can give
// files away, others can choose among their own groups.
func (o owner) give(f *os.File) {
	fi, err := f.Stat()
	if err != nil {
		return
	}
	if is, ok := ownerOf(fi); ok && is != o && f.Chown(o.user, o.group) != nil && is.group != o.group {
		_ = f.Chown(-1, o.group)
	}
}

// deviceOf returns the file system that a file is on.
func deviceOf(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// mayChange returns nil when names in a directory can be made and taken away.
func mayChange(dir *os.File) error {
	return unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// mayTake reports whether a file can be taken away from a directory that can be
// changed: from one like /tmp only by its owner.
func mayTake(dir, file fs.FileInfo) bool {
	return dir.Mode()&fs.ModeSticky == 0 || mayTime(dir) || mayTime(file)
}

// mayTime reports whether a file's time can be set.
func mayTime(file fs.FileInfo) bool {
	user := os.Geteuid()
	is, ok := ownerOf(file)
	return user == 0 || !ok || is.user == user
}

// setLinkTime sets the time of a link in a directory.
func setLinkTime(dir *os.File, name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// folderKey returns a name of the folder that is the same in all processes.
func folderKey(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%016x-%016x", uint64(st.Dev), uint64(st.Ino))
	}
	return ""
}

// tryLock locks a folder against other holders of it, also in other processes,
// until the file is closed. A shared lock keeps only those out that are not.
func tryLock(dir *os.File, shared bool) (lockState, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(dir.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return lockAnswer(err)
		}
	}
}

// lockAnswer says what the answer to a try to lock means.
func lockAnswer(err error) (lockState, error) {
	switch {
	case err == nil:
		return locked, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return lockedByOther, nil
	// A network file system says EBADF of what is not open for writing, which a
	// folder never is.
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS),
		errors.Is(err, syscall.EBADF):
		return lockless, nil
	}
	return lockedByOther, err
}

// syncRead makes a directory, or a file that was opened for reading, durable.
func syncRead(f *os.File) error { return f.Sync() }
