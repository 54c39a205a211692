// Package wasi calls WASI preview 1 as it is, for guests that try what the
// standard library hides: it cleans paths, asks for rights by habit and has no
// sockets. Elsewhere than on wasip1 every function answers ENOSYS.
//
// See https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
package wasi

import "strconv"

// Errno is an error number of WASI preview 1; 0 is success.
type Errno uint32

// The error numbers that the bundled guests tell apart.
const (
	Success     Errno = 0
	EACCES      Errno = 2
	EEXIST      Errno = 20
	ELOOP       Errno = 32
	ENOENT      Errno = 44
	ENOSYS      Errno = 52
	EPERM       Errno = 63
	ENOTCAPABLE Errno = 76
)

var names = [...]string{
	"success", "E2BIG", "EACCES", "EADDRINUSE", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EAGAIN", "EALREADY", "EBADF",
	"EBADMSG", "EBUSY", "ECANCELED", "ECHILD", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EDEADLK",
	"EDESTADDRREQ", "EDOM", "EDQUOT", "EEXIST", "EFAULT", "EFBIG", "EHOSTUNREACH", "EIDRM", "EILSEQ",
	"EINPROGRESS", "EINTR", "EINVAL", "EIO", "EISCONN", "EISDIR", "ELOOP", "EMFILE", "EMLINK", "EMSGSIZE",
	"EMULTIHOP", "ENAMETOOLONG", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENFILE", "ENOBUFS", "ENODEV", "ENOENT",
	"ENOEXEC", "ENOLCK", "ENOLINK", "ENOMEM", "ENOMSG", "ENOPROTOOPT", "ENOSPC", "ENOSYS", "ENOTCONN", "ENOTDIR",
	"ENOTEMPTY", "ENOTRECOVERABLE", "ENOTSOCK", "ENOTSUP", "ENOTTY", "ENXIO", "EOVERFLOW", "EOWNERDEAD", "EPERM",
	"EPIPE", "EPROTO", "EPROTONOSUPPORT", "EPROTOTYPE", "ERANGE", "EROFS", "ESPIPE", "ESRCH", "ESTALE",
	"ETIMEDOUT", "ETXTBSY", "EXDEV", "ENOTCAPABLE",
}

// String returns the name, for example "ENOENT".
func (e Errno) String() string {
	if int(e) < len(names) {
		return names[e]
	}
	return "errno " + strconv.Itoa(int(e))
}

// Error returns the name.
func (e Errno) Error() string { return e.String() }

// Err returns nil for success, else e.
func (e Errno) Err() error {
	if e == Success {
		return nil
	}
	return e
}

// FD is a descriptor.
type FD int32

// Rights of an open.
const (
	RightRead     uint64 = 1 << 1
	RightSeek     uint64 = 1 << 2
	RightWrite    uint64 = 1 << 6
	RightAllocate uint64 = 1 << 8
)

// Flags of an open: what to do with the file.
const (
	Create    uint32 = 1 << 0
	Directory uint32 = 1 << 1
	Exclusive uint32 = 1 << 2
	Truncate  uint32 = 1 << 3
)

// Append is the descriptor flag that puts every write at the end.
const Append uint32 = 1 << 0

// Which times a call sets.
const (
	AccessTime      uint32 = 1 << 0
	ModifiedTime    uint32 = 1 << 2
	ModifiedTimeNow uint32 = 1 << 3
)

// Open says how a path is opened.
type Open struct {
	NoFollow bool // do not follow a link at the end of the path
	Flags    uint32
	Rights   uint64
	FDFlags  uint32
}
