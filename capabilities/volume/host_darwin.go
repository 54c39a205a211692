package volume

import (
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
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}

// fineTimes reports whether a file system is one that counts nanoseconds.
func fineTimes(dir *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(dir.Fd()), &st) == nil && unix.ByteSliceToString(st.Fstypename[:]) == "apfs"
}

// noAttribute is the answer to the question for an attribute that is not there.
const noAttribute = unix.ENOATTR

// useOf says what becomes of an extended attribute. The system's own tell of where
// a file came from, and some cannot be written. Access control lists are none.
func useOf(name string) attributeUse {
	if strings.HasPrefix(name, "com.apple.") {
		return attributeTried
	}
	return attributeKept
}

func openAttributes(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOFOLLOW, 0)
}

// attributed is a file that can be asked for its attributes.
type attributed struct{ fd int }

func attributedBy(f *os.File) attributed { return attributed{int(f.Fd())} }

func (a attributed) list(b []byte) (int, error) { return unix.Flistxattr(a.fd, b) }

func (a attributed) get(name string, b []byte) (int, error) { return unix.Fgetxattr(a.fd, name, b) }
