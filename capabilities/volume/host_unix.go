//go:build unix

package volume

import (
	"errors"
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

// tryLock locks a folder against other holders of it, also in other processes,
// until the file is closed. It reports false while another holds it. Where
// folders cannot be locked it reports true.
func tryLock(dir *os.File) bool {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}

// syncDir makes the names of a directory durable.
func syncDir(dir *os.File) error { return dir.Sync() }
