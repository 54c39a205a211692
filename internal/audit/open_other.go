//go:build !windows

package audit

import "os"

// openAppend opens a file so that every write goes to its end, made when it is
// missing.
func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
}

// openRead opens a file that may be renamed while it is read.
func openRead(path string) (*os.File, error) { return os.Open(path) }
