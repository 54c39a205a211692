//go:build unix

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
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

// keepOwner gives a new file the owner of the one that it replaces, as far as
// the host allows.
func keepOwner(f *os.File, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	fi, err := f.Stat()
	if !ok || err != nil {
		return
	}
	if is, ok := fi.Sys().(*syscall.Stat_t); ok && (is.Uid != st.Uid || is.Gid != st.Gid) {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // only root can give files away
	}
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

// syncDir makes the names of a directory durable.
func syncDir(dir *os.File) error { return dir.Sync() }
