//go:build wasip1

package wasi

import "strings"

// Dir returns the descriptor of the volume that is preopened at path.
func Dir(path string) (FD, error) {
	for fd := FD(3); ; fd++ {
		var stat prestat
		if e := fdPrestatGet(fd, &stat); e != Success {
			return -1, ENOENT
		}
		name := make([]byte, stat.nameLen+1)
		if e := fdPrestatDirName(fd, &name[0], stat.nameLen); e != Success {
			return -1, e
		}
		if strings.TrimRight(string(name[:stat.nameLen]), "/") == path {
			return fd, nil
		}
	}
}

// PathOpen opens a path below dir.
func PathOpen(dir FD, path string, o Open) (FD, Errno) {
	var follow uint32 = 1
	if o.NoFollow {
		follow = 0
	}
	var fd int32 = -1
	e := pathOpen(dir, follow, path, o.Flags, o.Rights, o.Rights, o.FDFlags, &fd)
	return FD(fd), e
}

// Close closes a descriptor.
func Close(fd FD) Errno { return fdClose(fd) }

// Read reads at the position of the descriptor.
func Read(fd FD, b []byte) (int, Errno) {
	v, n := vector(b), uint32(0)
	e := fdRead(fd, &v, 1, &n)
	return int(n), e
}

// Write writes at the position of the descriptor.
func Write(fd FD, b []byte) (int, Errno) {
	v, n := vector(b), uint32(0)
	e := fdWrite(fd, &v, 1, &n)
	return int(n), e
}

// WriteAt writes at an offset.
func WriteAt(fd FD, b []byte, offset uint64) (int, Errno) {
	v, n := vector(b), uint32(0)
	e := fdPwrite(fd, &v, 1, offset, &n)
	return int(n), e
}

// Allocate reserves space in a file.
func Allocate(fd FD, offset, size uint64) Errno { return fdAllocate(fd, offset, size) }

// SetSize sets the size of a file.
func SetSize(fd FD, size uint64) Errno { return fdFilestatSetSize(fd, size) }

// SetTimes sets the times of a file, in nanoseconds.
func SetTimes(fd FD, atime, mtime uint64, which uint32) Errno {
	return fdFilestatSetTimes(fd, atime, mtime, which)
}

// PathSetTimes sets the times of a path below dir, in nanoseconds.
func PathSetTimes(dir FD, path string, atime, mtime uint64, which uint32) Errno {
	return pathFilestatSetTimes(dir, 1, path, atime, mtime, which)
}

// PathStat looks a path up, following a link at its end.
func PathStat(dir FD, path string) Errno {
	var stat [64]byte
	return pathFilestatGet(dir, 1, path, &stat[0])
}

// Mkdir makes a folder below dir.
func Mkdir(dir FD, path string) Errno { return pathCreateDirectory(dir, path) }

// Rmdir removes a folder below dir.
func Rmdir(dir FD, path string) Errno { return pathRemoveDirectory(dir, path) }

// Unlink removes a file below dir.
func Unlink(dir FD, path string) Errno { return pathUnlinkFile(dir, path) }

// Rename renames a path below one folder to a path below another.
func Rename(from FD, old string, to FD, path string) Errno {
	return pathRename(from, old, to, path)
}

// Symlink makes a symbolic link below dir.
func Symlink(target string, dir FD, path string) Errno { return pathSymlink(target, dir, path) }

// Link makes a hard link.
func Link(from FD, old string, to FD, path string) Errno { return pathLink(from, 0, old, to, path) }

// Readlink returns the target of a symbolic link below dir.
func Readlink(dir FD, path string) (string, Errno) {
	b := make([]byte, 4096)
	var n uint32
	e := pathReadlink(dir, path, &b[0], uint32(len(b)), &n)
	return string(b[:n]), e
}

// SockAccept accepts a connection on a descriptor.
func SockAccept(fd FD) (FD, Errno) {
	var conn int32 = -1
	e := sockAccept(fd, 0, &conn)
	return FD(conn), e
}

// SockRecv receives from a descriptor.
func SockRecv(fd FD, b []byte) (int, Errno) {
	v, n, flags := vector(b), uint32(0), uint32(0)
	e := sockRecv(fd, &v, 1, 0, &n, &flags)
	return int(n), e
}

// SockSend sends to a descriptor.
func SockSend(fd FD, b []byte) (int, Errno) {
	v, n := vector(b), uint32(0)
	e := sockSend(fd, &v, 1, 0, &n)
	return int(n), e
}

// SockShutdown ends both directions of a connection.
func SockShutdown(fd FD) Errno { return sockShutdown(fd, 3) }
