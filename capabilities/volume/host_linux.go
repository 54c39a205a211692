package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// statusTime returns the time of a file's last change of any sort.
func statusTime(fi fs.FileInfo) time.Time {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}

// fineTimes reports whether a file system is one that counts nanoseconds.
func fineTimes(dir *os.File) bool {
	const zfs = 0x2fc12fc1
	var st unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &st) != nil {
		return false
	}
	switch uint32(st.Type) { // of another sign on some architectures
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfs:
		return true
	}
	return false
}

// noAttribute is the answer to the question for an attribute that is not there.
const noAttribute = unix.ENODATA

// useOf says what becomes of an extended attribute. The system itself takes away
// what gives a program privileges when its content changes, and marks of a content
// are not true of another.
func useOf(name string) attributeUse {
	switch {
	case name == "security.capability", name == "security.ima", name == "security.evm", strings.HasPrefix(name, "trusted."):
		return attributeDropped
	case strings.HasPrefix(name, "user."), strings.HasPrefix(name, "system.posix_acl_"):
		return attributeKept
	}
	return attributeTried
}

// openAttributes opens a file for its attributes: also one that cannot be read.
func openAttributes(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EACCES) {
		return root.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	}
	return f, err
}

// attributed is a file that can be asked for its attributes.
type attributed struct {
	fd   int
	path string // of a file that was opened as a path only
}

func attributedBy(f *os.File) attributed {
	a := attributed{fd: int(f.Fd())}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err == nil && flags&unix.O_PATH != 0 {
		a.path = fmt.Sprintf("/proc/self/fd/%d", a.fd)
	}
	return a
}

func (a attributed) list(b []byte) (int, error) {
	if a.path != "" {
		return unix.Listxattr(a.path, b)
	}
	return unix.Flistxattr(a.fd, b)
}

func (a attributed) get(name string, b []byte) (int, error) {
	if a.path != "" {
		return unix.Getxattr(a.path, name, b)
	}
	return unix.Fgetxattr(a.fd, name, b)
}
