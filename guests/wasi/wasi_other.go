//go:build !wasip1

package wasi

// Dir returns the descriptor of the volume that is preopened at path.
func Dir(string) (FD, error) { return -1, ENOSYS }

// PathOpen opens a path below dir.
func PathOpen(FD, string, Open) (FD, Errno) { return -1, ENOSYS }

// Close closes a descriptor.
func Close(FD) Errno { return ENOSYS }

// Read reads at the position of the descriptor.
func Read(FD, []byte) (int, Errno) { return 0, ENOSYS }

// Write writes at the position of the descriptor.
func Write(FD, []byte) (int, Errno) { return 0, ENOSYS }

// WriteAt writes at an offset.
func WriteAt(FD, []byte, uint64) (int, Errno) { return 0, ENOSYS }

// Allocate reserves space in a file.
func Allocate(FD, uint64, uint64) Errno { return ENOSYS }

// SetSize sets the size of a file.
func SetSize(FD, uint64) Errno { return ENOSYS }

// SetTimes sets the times of a file, in nanoseconds.
func SetTimes(FD, uint64, uint64, uint32) Errno { return ENOSYS }

// PathSetTimes sets the times of a path below dir, in nanoseconds.
func PathSetTimes(FD, string, uint64, uint64, uint32) Errno { return ENOSYS }

// PathStat looks a path up, following a link at its end.
func PathStat(FD, string) Errno { return ENOSYS }

// Mkdir makes a folder below dir.
func Mkdir(FD, string) Errno { return ENOSYS }

// Rmdir removes a folder below dir.
func Rmdir(FD, string) Errno { return ENOSYS }

// Unlink removes a file below dir.
func Unlink(FD, string) Errno { return ENOSYS }

// Rename renames a path below one folder to a path below another.
func Rename(FD, string, FD, string) Errno { return ENOSYS }

// Symlink makes a symbolic link below dir.
func Symlink(string, FD, string) Errno { return ENOSYS }

// Link makes a hard link.
func Link(FD, string, FD, string) Errno { return ENOSYS }

// Readlink returns the target of a symbolic link below dir.
func Readlink(FD, string) (string, Errno) { return "", ENOSYS }

// SockAccept accepts a connection on a descriptor.
func SockAccept(FD) (FD, Errno) { return -1, ENOSYS }

// SockRecv receives from a descriptor.
func SockRecv(FD, []byte) (int, Errno) { return 0, ENOSYS }

// SockSend sends to a descriptor.
func SockSend(FD, []byte) (int, Errno) { return 0, ENOSYS }

// SockShutdown ends both directions of a connection.
func SockShutdown(FD) Errno { return ENOSYS }
