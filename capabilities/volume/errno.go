package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sandboxd/sandboxd/capabilities"
)

// errnos are the system's errors that have a name of their own. They are asked
// for before the classes of package fs, which are coarser.
var errnos = []struct {
	system error
	name   capabilities.Errno
}{
	{syscall.ENOTEMPTY, capabilities.ENOTEMPTY},
	{syscall.ENOTDIR, capabilities.ENOTDIR},
	{syscall.EISDIR, capabilities.EISDIR},
	{syscall.ELOOP, capabilities.ELOOP},
	{syscall.ENAMETOOLONG, capabilities.ENAMETOOLONG},
	{syscall.ENOSPC, capabilities.ENOSPC},
	{syscall.EDQUOT, capabilities.ENOSPC},
	{syscall.EROFS, capabilities.EROFS},
	{syscall.EXDEV, capabilities.EXDEV},
	{syscall.EMFILE, capabilities.EMFILE},
	{syscall.ENFILE, capabilities.EMFILE},
	{syscall.EBUSY, capabilities.EBUSY},
	{syscall.EFBIG, capabilities.EFBIG},
	{syscall.EINVAL, capabilities.EINVAL},
	{syscall.EAGAIN, capabilities.EAGAIN},
	{syscall.EPERM, capabilities.EPERM},
	{fs.ErrNotExist, capabilities.ENOENT},
	{fs.ErrExist, capabilities.EEXIST},
	{fs.ErrPermission, capabilities.EACCES},
	{fs.ErrInvalid, capabilities.EINVAL},
	{fs.ErrClosed, capabilities.EBADF},
}

// errnoOf returns the name of an error of the host's file system, EIO for one
// that has none, nil for nil.
func errnoOf(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[capabilities.Errno](err); ok {
		return e
	}
	for _, e := range errnos {
		if errors.Is(err, e.system) {
			return e.name
		}
	}
	return capabilities.EIO
}

// named adds the name to an error of the host's file system, for the host's
// log.
func named(err error) error {
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	if _, ok := errors.AsType[capabilities.Errno](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", errnoOf(err), err)
}
