//go:build wasip1

package wasi

import (
	"reflect"
	"structs"
)

// iovec is a buffer as the host sees it: an address and a length.
type iovec struct {
	_    structs.HostLayout
	addr uint32
	size uint32
}

// vector returns the iovec of b, which must stay reachable while it is used.
// The address is taken with reflect, which spares the package unsafe.
func vector(b []byte) iovec {
	return iovec{addr: uint32(reflect.ValueOf(b).Pointer()), size: uint32(len(b))}
}

type prestat struct {
	_       structs.HostLayout
	tag     uint8
	_       [3]uint8
	nameLen uint32
}

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
func fdPrestatGet(fd FD, stat *prestat) Errno

//go:wasmimport wasi_snapshot_preview1 fd_prestat_dir_name
func fdPrestatDirName(fd FD, path *byte, size uint32) Errno

//go:wasmimport wasi_snapshot_preview1 path_open
func pathOpen(dir FD, lookup uint32, path string, oflags uint32, base, inheriting uint64, fdflags uint32, fd *int32) Errno

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd FD) Errno

//go:wasmimport wasi_snapshot_preview1 fd_read
func fdRead(fd FD, iovs *iovec, count uint32, n *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 fd_write
func fdWrite(fd FD, iovs *iovec, count uint32, n *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 fd_pwrite
func fdPwrite(fd FD, iovs *iovec, count uint32, offset uint64, n *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 fd_allocate
func fdAllocate(fd FD, offset, size uint64) Errno

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
func fdFilestatSetSize(fd FD, size uint64) Errno

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
func fdFilestatSetTimes(fd FD, atime, mtime uint64, which uint32) Errno

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
func pathFilestatSetTimes(dir FD, lookup uint32, path string, atime, mtime uint64, which uint32) Errno

//go:wasmimport wasi_snapshot_preview1 path_filestat_get
func pathFilestatGet(dir FD, lookup uint32, path string, stat *byte) Errno

//go:wasmimport wasi_snapshot_preview1 path_create_directory
func pathCreateDirectory(dir FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_remove_directory
func pathRemoveDirectory(dir FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_unlink_file
func pathUnlinkFile(dir FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_rename
func pathRename(from FD, old string, to FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_symlink
func pathSymlink(target string, dir FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_link
func pathLink(from FD, lookup uint32, old string, to FD, path string) Errno

//go:wasmimport wasi_snapshot_preview1 path_readlink
func pathReadlink(dir FD, path string, buf *byte, size uint32, n *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 sock_accept
func sockAccept(fd FD, flags uint32, conn *int32) Errno

//go:wasmimport wasi_snapshot_preview1 sock_recv
func sockRecv(fd FD, iovs *iovec, count, riflags uint32, n, roflags *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 sock_send
func sockSend(fd FD, iovs *iovec, count, siflags uint32, n *uint32) Errno

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
func sockShutdown(fd FD, how uint32) Errno
