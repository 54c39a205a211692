package capabilities

// Errno is a POSIX error name. It is the error that the file capabilities
// return; the guest ABI turns it into the number of its own convention.
type Errno string

// The errors that file operations return (POSIX.1-2017, <errno.h>).
const (
	EACCES       Errno = "EACCES"
	EAGAIN       Errno = "EAGAIN"
	EBADF        Errno = "EBADF"
	EBUSY        Errno = "EBUSY"
	ECONNREFUSED Errno = "ECONNREFUSED"
	EEXIST       Errno = "EEXIST"
	EFBIG        Errno = "EFBIG"
	EILSEQ       Errno = "EILSEQ"
	EINVAL       Errno = "EINVAL"
	EIO          Errno = "EIO"
	EISDIR       Errno = "EISDIR"
	ELOOP        Errno = "ELOOP"
	EMFILE       Errno = "EMFILE"
	ENAMETOOLONG Errno = "ENAMETOOLONG"
	ENOENT       Errno = "ENOENT"
	ENOSPC       Errno = "ENOSPC"
	ENOTDIR      Errno = "ENOTDIR"
	ENOTEMPTY    Errno = "ENOTEMPTY"
	ENOTSUP      Errno = "ENOTSUP"
	EPERM        Errno = "EPERM"
	EROFS        Errno = "EROFS"
	EXDEV        Errno = "EXDEV"
)

// Error returns the name, for example "ENOENT".
func (e Errno) Error() string { return string(e) }
