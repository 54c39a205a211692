package audit

import (
	"io/fs"
	"os"
	"syscall"
)

// openAppend opens a file so that every write goes to its end, made when it is
// missing. Package os shares no right to rename a file that is open, which
// rotation needs.
func openAppend(path string) (*os.File, error) {
	return open(path, syscall.GENERIC_READ|syscall.FILE_APPEND_DATA, syscall.OPEN_ALWAYS)
}

// openRead opens a file that may be renamed while it is read.
func openRead(path string) (*os.File, error) {
	return open(path, syscall.GENERIC_READ, syscall.OPEN_EXISTING)
}

func open(path string, access, disposition uint32) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	const share = syscall.FILE_SHARE_READ | syscall.FILE_SHARE_WRITE | syscall.FILE_SHARE_DELETE
	h, err := syscall.CreateFile(name, access, share, nil, disposition, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
